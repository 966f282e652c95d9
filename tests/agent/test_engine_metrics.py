"""EngineMetricsSource over a real HTTP server on loopback that answers well, badly, slowly and without end."""

import http.server
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from oomwatch import wire
from oomwatch_agent.engines.fetch import Endpoint, endpoint
from oomwatch_agent.engines.find import Finder, Server
from oomwatch_agent.engines.metrics import EngineMetricsSource
from oomwatch_agent.who.processes import Processes

PAGE = (
    'vllm:num_requests_running{engine="0",model_name="m"} 3\nvllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.5\n'
)
LIMIT_SECONDS = 0.5
DEADLINE_SECONDS = 10.0

Answer = Callable[["Handler"], None]


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers as its server was told to."""

    server: "Engine"

    def do_GET(self) -> None:
        self.server.paths.append(self.path)
        self.server.answer(self)

    def log_message(self, *_: object) -> None:
        pass

    def page(self, text: str = PAGE, status: int = 200, **headers: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


class Engine(http.server.ThreadingHTTPServer):
    """A server whose answers a test writes; `over` lets answers that wait or have no end stop."""

    block_on_close = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer: Answer = Handler.page
        self.paths: list[str] = []
        self.over = threading.Event()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"

    def handle_error(self, *_: object) -> None:
        """The source hung up, which is what these tests are about."""


class FakeClock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class FakeFinder(Finder):
    """Finds what a test put there."""

    def __init__(self, *places: Endpoint) -> None:
        super().__init__()
        self.places = list(places)
        self.looks = 0

    def find(self) -> tuple[Server, ...]:
        self.looks += 1
        return tuple(Server(place) for place in self.places)


@pytest.fixture
def engine() -> Iterator[Engine]:
    server = Engine()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.over.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def _source(
    *wanted: str, clock: FakeClock, finder: Finder | None = None, run: str | None = None
) -> EngineMetricsSource:
    source = EngineMetricsSource(wanted, run, finder=finder, clock=clock, limit_seconds=LIMIT_SECONDS)
    source.open()
    return source


def _facts(source: EngineMetricsSource) -> wire.SourceFacts:
    """What it says of itself after a slow read."""
    opened = source.open()
    facts = source.read(slow=True).facts or opened
    return facts.sources[0]


def _trouble(engine: Engine, clock: FakeClock, answer: Answer) -> str:
    engine.answer = answer
    facts = _facts(_source(engine.address, clock=clock))
    assert facts.state == "failed"
    assert facts.detail is not None
    return facts.detail


# ------------------------------------------------------------ good answers


def test_a_slow_read_gives_a_sample_of_every_engine(engine: Engine, clock: FakeClock) -> None:
    source = _source(f"http://{engine.address}", clock=clock, run="grpo")
    assert source.read(slow=True).engines == (
        wire.EngineSample(
            engine="vllm", address=engine.address, model="m", run="grpo", kv_used_ratio=0.5, requests_running=3
        ),
    )
    assert engine.paths == ["/metrics"]


def test_other_reads_leave_the_engines_alone(engine: Engine, clock: FakeClock) -> None:
    source = _source(engine.address, clock=clock)
    assert source.read(slow=False).engines == ()
    assert engine.paths == []


def test_another_path_can_be_named(engine: Engine, clock: FakeClock) -> None:
    _source(f"http://{engine.address}/engine/metrics?full=1", clock=clock).read(slow=True)
    assert engine.paths == ["/engine/metrics?full=1"]


def test_an_answer_in_pieces_is_put_together(engine: Engine, clock: FakeClock) -> None:
    def in_chunks(handler: Handler) -> None:
        handler.protocol_version = "HTTP/1.1"
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for piece in (PAGE[:20], PAGE[20:]):
            handler.wfile.write(f"{len(piece):x}\r\n{piece}\r\n".encode())
        handler.wfile.write(b"0\r\n\r\n")
        handler.close_connection = True

    engine.answer = in_chunks
    (sample,) = _source(engine.address, clock=clock).read(slow=True).engines
    assert sample.requests_running == 3


def test_an_engine_that_leaves_the_connection_open_is_not_waited_for(engine: Engine, clock: FakeClock) -> None:
    def left_open(handler: Handler) -> None:
        handler.page()
        handler.server.over.wait(DEADLINE_SECONDS)

    engine.answer = left_open
    assert len(_source(engine.address, clock=clock).read(slow=True).engines) == 1


# ------------------------------------------------------------ bad answers


def test_a_page_that_is_not_there_says_what_to_switch_on(engine: Engine, clock: FakeClock) -> None:
    trouble = _trouble(engine, clock, lambda handler: handler.page("no", 404))
    assert trouble.startswith(f"{engine.address}: 404")
    assert "--enable-metrics" in trouble


def test_a_refusal_is_told(engine: Engine, clock: FakeClock) -> None:
    assert "503 Service Unavailable" in _trouble(engine, clock, lambda handler: handler.page("loading", 503))


def test_a_redirect_is_not_followed(engine: Engine, clock: FakeClock) -> None:
    trouble = _trouble(engine, clock, lambda handler: handler.page("", 307, Location=f"http://{engine.address}/else"))
    assert "it redirects to" in trouble
    assert engine.paths == ["/metrics"]


def test_another_programs_page_is_no_engine(engine: Engine, clock: FakeClock) -> None:
    assert "no metrics of vLLM or SGLang" in _trouble(engine, clock, lambda handler: handler.page("up 1\n"))


def test_a_malformed_line_is_shown(engine: Engine, clock: FakeClock) -> None:
    trouble = _trouble(engine, clock, lambda handler: handler.page("vllm:num_requests_running lots\n"))
    assert "'vllm:num_requests_running lots'" in trouble


def test_what_is_no_http_at_all_is_told(engine: Engine, clock: FakeClock) -> None:
    def garbage(handler: Handler) -> None:
        handler.wfile.write(b"\x00\xff\x7fgRPC\x00" * 40)
        handler.close_connection = True

    assert "no HTTP answer" in _trouble(engine, clock, garbage)


def test_an_answer_that_breaks_off_is_not_taken_for_a_page(engine: Engine, clock: FakeClock) -> None:
    def half(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(PAGE)))
        handler.end_headers()
        handler.wfile.write(PAGE[:60].encode())
        handler.close_connection = True

    assert "breaks off" in _trouble(engine, clock, half)


def test_a_page_without_end_is_not_read_to_its_end(engine: Engine, clock: FakeClock) -> None:
    def endless(handler: Handler) -> None:
        handler.send_response(200)
        handler.end_headers()
        while not handler.server.over.is_set():
            handler.wfile.write(b"# nothing\n" * 10_000)

    assert "longer than 4 MiB" in _trouble(engine, clock, endless)


def test_an_engine_that_does_not_answer_costs_its_time_limit_only(engine: Engine, clock: FakeClock) -> None:
    def silent(handler: Handler) -> None:
        handler.server.over.wait(DEADLINE_SECONDS)

    started_at = time.monotonic()
    assert "no whole answer within" in _trouble(engine, clock, silent)
    assert time.monotonic() - started_at < 4 * LIMIT_SECONDS


def test_a_page_that_comes_drop_by_drop_is_given_up(engine: Engine, clock: FakeClock) -> None:
    def drops(handler: Handler) -> None:
        handler.send_response(200)
        handler.end_headers()
        while not handler.server.over.wait(0.01):
            handler.wfile.write(b"#")

    assert "no whole answer within" in _trouble(engine, clock, drops)


def test_headers_that_come_drop_by_drop_are_given_up(engine: Engine, clock: FakeClock) -> None:
    def drops(handler: Handler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        while not handler.server.over.wait(0.01):
            handler.wfile.write(b"x")

    assert "no answer in time" in _trouble(engine, clock, drops)


def test_a_stuck_engine_does_not_keep_the_others_from_answering(engine: Engine, clock: FakeClock) -> None:
    stuck = Engine()
    stuck.answer = lambda handler: _wait(handler.server.over)
    thread = threading.Thread(target=stuck.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        reading = _source(stuck.address, engine.address, clock=clock).read(slow=True)
    finally:
        stuck.over.set()
        stuck.shutdown()
        stuck.server_close()
        thread.join()
    assert [sample.address for sample in reading.engines] == [engine.address]


def _wait(event: threading.Event) -> None:
    event.wait(DEADLINE_SECONDS)


def test_where_nothing_listens_that_is_said(clock: FakeClock) -> None:
    gone = Engine()
    gone.server_close()
    facts = _facts(_source(gone.address, clock=clock))
    assert (facts.state, facts.detail) == ("failed", f"{gone.address}: nothing listens there")


# ------------------------------------------------------------ resting, and finding


def test_an_engine_that_gives_nothing_is_asked_less_and_less(engine: Engine, clock: FakeClock) -> None:
    engine.answer = lambda handler: handler.page("loading", 503)
    source = _source(engine.address, clock=clock)
    for _ in range(60):  # ten minutes
        source.read(slow=True)
        clock.now += 10
    assert len(engine.paths) == 6  # at 0, 20, 50, 110, 230 and 470 s
    engine.answer = Handler.page
    clock.now += 300
    assert len(source.read(slow=True).engines) == 1
    clock.now += 10
    assert len(source.read(slow=True).engines) == 1


def test_facts_are_told_when_they_change(engine: Engine, clock: FakeClock) -> None:
    source = _source(engine.address, clock=clock)
    engine.answer = lambda handler: handler.page("no", 404)
    facts = source.read(slow=True).facts
    assert facts is not None
    assert facts.sources[0].state == "failed"
    assert source.read(slow=True).facts is None


def test_until_an_engine_is_found_the_source_waits(clock: FakeClock) -> None:
    facts = _facts(_source("auto", clock=clock, finder=FakeFinder()))
    assert facts.state == "waiting"
    assert "--engine-metrics" in (facts.detail or "")


def test_an_engine_that_starts_later_is_found_and_one_that_ends_is_forgotten(engine: Engine, clock: FakeClock) -> None:
    finder = FakeFinder()
    source = _source("auto", clock=clock, finder=finder)
    assert source.read(slow=True).engines == ()
    finder.places.append(endpoint(engine.address))
    clock.now += 60
    assert len(source.read(slow=True).engines) == 1
    finder.places.clear()
    clock.now += 60
    assert source.read(slow=True).engines == ()


def test_looking_for_engines_is_done_every_half_minute(clock: FakeClock) -> None:
    finder = FakeFinder()
    source = _source("auto", clock=clock, finder=finder)
    for _ in range(6):
        source.read(slow=True)
        clock.now += 10
    assert finder.looks == 2


def test_an_engine_that_is_named_and_found_is_asked_once(engine: Engine, clock: FakeClock) -> None:
    finder = FakeFinder(Endpoint("localhost", engine.server_address[1]))
    source = _source(engine.address, "auto", clock=clock, finder=finder)
    assert len(source.read(slow=True).engines) == 1


def test_more_engines_than_are_asked_are_left_out_and_said(clock: FakeClock) -> None:
    finder = FakeFinder(*(Endpoint("127.0.0.1", port, f"/{port}") for port in range(1, 67)))
    facts = _facts(_source("auto", clock=clock, finder=finder))
    assert (facts.detail or "").startswith("2 more engines than the 64 that are asked")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("127.0.0.1:8000", Endpoint("127.0.0.1", 8000, "/metrics")),
        ("http://node7:30000/", Endpoint("node7", 30000, "/metrics")),
        ("http://[::1]:8000/m", Endpoint("::1", 8000, "/m")),
    ],
)
def test_an_address_may_be_short_or_a_url(text: str, place: Endpoint) -> None:
    assert endpoint(text) == place


@pytest.mark.parametrize(
    "text", ["", "node7", "https://node7:8000", "http://u:p@h:1/m", "h:99999", "h:0", "http://:80"]
)
def test_what_is_no_address_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="write for example"):
        endpoint(text)


def test_an_ipv6_address_is_written_in_brackets() -> None:
    assert Endpoint("::1", 8000).address == "[::1]:8000"


def test_the_run_is_that_of_the_servers_process(engine: Engine, clock: FakeClock, tmp_path: Path) -> None:
    process = tmp_path / "proc/77"
    process.mkdir(parents=True)
    (process / "stat").write_text("77 (python3) S " + " ".join(["0"] * 30))
    (process / "cmdline").write_text("python3\0")
    (process / "environ").write_text("OOMWATCH_RUN=dapo\0")

    class OneFinder(FakeFinder):
        def find(self) -> tuple[Server, ...]:
            return (Server(endpoint(engine.address), 77),)

    source = EngineMetricsSource(("auto",), "other", finder=OneFinder(), processes=Processes(tmp_path), clock=clock)
    source.open()
    assert [sample.run for sample in source.read(slow=True).engines] == ["dapo"]
