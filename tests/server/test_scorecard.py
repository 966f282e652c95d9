"""How good the warnings of each rule were: from alerts, failures and the time that GPUs were watched."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import msgspec
import pytest
from tests.postgres.fixtures import on_sqlite
from tests.server.house import START, hello, sample
from tests.server.running_server import serving, settings_in

from oomwatch import wire
from oomwatch.__main__ import main
from oomwatch.scorecard import Failure, RuleScore, Scorecard, failures_of, scores
from oomwatch.store.store import Batch, Entry, Store

OOM = wire.DeviceOom(error="torch.OutOfMemoryError")


def failure(at: float, run: str | None = "r", node: str = "n") -> Failure:
    return Failure(channel="device", at=at, end_at=at, node=node, run=run)


def warning(
    verdict: wire.AlertVerdict | None, at: float = 100.0, lead: float = 0.0, steps: int | None = None, run: str = "r"
) -> wire.Alert:
    outcome = verdict and wire.Outcome(verdict=verdict, at=at, lead_seconds=lead, lead_steps=steps)
    return wire.Alert(
        id=f"{verdict}{at}{lead}", alert="full", severity="warning", state="resolved",
        labels={"node": "n", "gpu": "0", "run": run}, started_at=at - lead, texts={}, outcome=outcome,
    )  # fmt: skip


def score(*alerts: wire.Alert, failures: list[Failure], gpu_days: float = 2.0) -> RuleScore:
    (one,) = scores(alerts, failures, {("full", "warning"): "device"}, gpu_days)
    return one


# ---------------------------------------------------------------- the arithmetic


def test_recall_counts_the_failures_that_were_told_a_minute_or_a_step_ahead() -> None:
    told = [
        warning("happened", 1000, lead=90),
        warning("happened", 2000, lead=5, steps=1),
        warning("happened", 3000, lead=30, steps=0),
    ]
    one = score(*told, failures=[failure(1000), failure(2000), failure(3000), failure(4000)])
    assert (one.failures, one.in_time, one.recall) == (4, 2, 0.5)


def test_a_failure_of_which_many_gpus_warned_counts_once_with_the_longest_lead() -> None:
    told = [warning("happened", 1000, lead=lead) for lead in (10.0, 300.0, 70.0)]
    one = score(*told, failures=[failure(1000)])
    assert (one.happened, one.in_time, one.lead_seconds_median) == (3, 1, 300.0)


def test_each_mistake_of_the_rule_file_is_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = tmp_path / "alerts.yaml"
    rules.write_text("rules: []\nruels: []\nnotfiy: {}\n", encoding="utf-8")
    assert main(["scorecard", "--rules", str(rules), "--db", str(tmp_path / "a.db")]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert all(line.startswith(f"{rules}:") for line in lines)


def test_leads_are_a_median_and_what_nine_in_ten_reach() -> None:
    leads = [float(10 * number) for number in range(1, 21)]
    told = [warning("happened", 1000 * number, lead=lead, steps=number) for number, lead in enumerate(leads, start=1)]
    one = score(*told, failures=[failure(1000 * number) for number in range(1, 21)])
    assert (one.lead_seconds_median, one.lead_seconds_p10) == (105.0, 20.0)
    assert (one.lead_steps_median, one.lead_steps_p10) == (10.5, 2)


def test_false_warnings_are_counted_by_the_days_that_gpus_were_watched() -> None:
    told = [warning("false"), warning("false", 200), warning("avoided"), warning(None)]
    one = score(*told, failures=[])
    assert (one.false, one.avoided, one.open, one.false_per_gpu_day) == (2, 1, 1, 1.0)
    assert one.recall is None
    assert score(*told, failures=[], gpu_days=0).false_per_gpu_day is None


def test_a_rule_is_held_against_what_it_predicts() -> None:
    host = Failure(channel="host", at=50, end_at=50, node="n")
    assert score(failures=[failure(100), host]).failures == 1


def test_a_warning_of_another_run_tells_nothing_of_a_failure() -> None:
    elsewhere = msgspec.structs.replace(failure(1000, run="other"), node="m")
    assert score(warning("happened", 1000, lead=100), failures=[elsewhere]).in_time == 0


def test_a_lowered_alert_counts_for_its_rule() -> None:
    lowered = msgspec.structs.replace(warning("false"), severity="info", lowered_from="warning")
    assert score(lowered, failures=[]).false == 1


def test_alerts_that_predict_nothing_are_in_no_row() -> None:
    silent = msgspec.structs.replace(warning(None), alert="agent_silent")
    assert [one.alert for one in scores([silent], [], {}, 1.0)] == []


def test_what_sixty_four_ranks_say_within_minutes_is_one_failure() -> None:
    said = [failure(1000 + rank * 3, node=f"n{rank % 8}") for rank in range(64)]
    (one,) = failures_of(said)
    assert (one.at, one.end_at) == (1000, 1189)


def test_another_run_and_another_time_are_other_failures() -> None:
    said = [failure(1000), failure(1001, run="other"), failure(1500)]
    assert [one.at for one in failures_of(said)] == [1000, 1001, 1500]


# ---------------------------------------------------------------- from a database


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    opened = Store.open(database_url)
    yield opened
    opened.close()


def transition(state: wire.AlertState, at: float, **fields: object) -> wire.Transition:
    values: dict[str, object] = {"labels": {"node": "gpu-07", "gpu": "0", "run": "r"}, "started_at": START, **fields}
    return wire.Transition(id="a", alert="full", severity="warning", state=state, at=at, **values)  # type: ignore[arg-type]


def fill(store: Store, seconds: int = 600) -> None:
    """Two GPUs watched for ten minutes, a warning, and the failure that it told of two minutes ahead."""
    failed_at = START + 500
    oom = wire.Event(seq=9001, at=failed_at, run="r", body=OOM)
    again = wire.Event(seq=9002, at=failed_at + 3, run="r", body=OOM)
    messages: list[wire.AgentMessage] = [hello(run="r", gpus=2)]
    messages += [sample(number + 1, 40, START + number, gpus=2) for number in range(seconds)]
    messages += [oom, again]
    for piece in range(0, len(messages), 50):
        some = messages[piece : piece + 50]
        store.record(
            Batch(entries=tuple(Entry(node="gpu-07", session="s", received_at=START, message=one) for one in some))
        )
    outcome = wire.Outcome(verdict="happened", at=failed_at, lead_seconds=120.0, lead_steps=4)
    store.append(
        [transition("firing", failed_at - 120), transition("firing", failed_at, change="outcome", outcome=outcome)]
    )


def test_a_scorecard_is_read_from_the_database(store: Store) -> None:
    fill(store)
    card = store.scorecard(START - 10, START + 1000, None, {("full", "warning"): "device"})
    (rule,) = card.rules
    assert (rule.failures, rule.in_time, rule.recall, rule.lead_seconds_median, rule.lead_steps_p10) == (
        1,
        1,
        1,
        120,
        4,
    )
    assert card.failures == {"device": 1}
    assert card.gpu_days * 86_400 == pytest.approx(1200, rel=0.02)


def test_only_the_time_asked_for_counts(store: Store) -> None:
    fill(store)
    half = store.scorecard(START, START + 300, None, {})
    assert half.gpu_days * 86_400 == pytest.approx(600, rel=0.05)
    assert (half.rules, half.failures) == ((), {})


def test_of_a_run_the_time_on_its_nodes_counts(store: Store) -> None:
    fill(store)
    assert store.scorecard(START, START + 1000, "r", {}).gpu_days > 0
    other = store.scorecard(START, START + 1000, "other", {})
    assert (other.gpu_days, other.rules, other.failures) == (0, (), {})


def test_merging_readings_changes_nothing_of_the_time_watched(store: Store) -> None:
    fill(store)
    before = store.scorecard(START, START + 1000, None, {}).gpu_days
    while store.compact(START + 86_400):
        pass
    assert store.scorecard(START, START + 1000, None, {}).gpu_days == pytest.approx(before, rel=0.01)


# ---------------------------------------------------------------- for people and programs


def test_the_server_and_the_command_give_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = settings_in(tmp_path)
    with serving(settings) as server:
        told = httpx.get(f"{server.url}/api/v1/scorecard").json()
        assert main(["scorecard", "--server", server.url, "--json"]) == 0
        by_command = msgspec.json.decode(capsys.readouterr().out, type=Scorecard)
        assert [one["alert"] for one in told["rules"]] == [one.alert for one in by_command.rules]
        assert main(["scorecard", "--server", server.url]) == 0
        assert "GPU-days watched" in capsys.readouterr().out
        assert httpx.get(f"{server.url}/api/v1/scorecard", params={"from": 5, "to": 4}).status_code == 400


@on_sqlite
def test_the_command_reads_a_database(
    tmp_path: Path, store: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    fill(store)
    rules = tmp_path / "rules.yaml"
    rules.write_text(
        "rules:\n  - alert: full\n    summary: full\n    when: {kind: threshold, metric: gpu_used_ratio, above: 85%}\n",
        encoding="utf-8",
    )
    arguments = ["scorecard", "--db", str(tmp_path / "oomwatch.db"), "--rules", str(rules), "--since", "9999d"]
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert "full (warning)         1        1    100%  2m, 4 steps" in out


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["--db", "none.db"], 1, "there is no database none.db; name one with --db"),
        (["--since", "soon"], 2, "flag --since"),
        (["--server", "ftp://x"], 2, "is no http:// or https:// address"),
        (["--server", "http://127.0.0.1:1"], 1, "cannot be reached"),
    ],
)
def test_a_wrong_question_is_answered_with_the_remedy(
    arguments: list[str], status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["scorecard", *arguments]) == status
    assert said in capsys.readouterr().err
