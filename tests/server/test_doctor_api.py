"""The doctor over HTTP: the report of the command, mistakes with place and remedy, and nobody else waits for it."""

import asyncio
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from tests.server.house import hello
from tests.server.running_server import AgentClient, RunningServer, serving, settings_in, until

import oomwatch.web.doctor
from oomwatch import wire
from oomwatch.catalogue import entries
from oomwatch.doctor.read import Source, read
from oomwatch.doctor.report import Given, Report, make_report
from oomwatch.plan.cards import card_named
from oomwatch.web.answers import RefusedError
from oomwatch.web.doctor import BYTES_MAX, PASTED
from oomwatch.web.practice import ClientGoneError, Practice

SCRIPT = """python3 -m verl.trainer.main_ppo \\
  actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct \\
  data.train_batch_size=60 actor_rollout_ref.rollout.n=12 \\
  trainer.n_gpus_per_node=6 actor_rollout_ref.actor.ppo_mini_batch_size=60 \\
  actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8
"""
SMALL = {
    "model_type": "qwen2",
    "num_hidden_layers": 4,
    "hidden_size": 512,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "intermediate_size": 1024,
    "vocab_size": 32000,
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with serving(settings_in(tmp_path_factory.mktemp("doctor"))) as server:
        yield server


def asked(server: RunningServer, **question: Any) -> httpx.Response:
    return server.ask("POST", "/api/v1/doctor", json=question)


def report(server: RunningServer, **question: Any) -> Report:
    answer = asked(server, **question)
    assert answer.status_code == 200, answer.text
    return msgspec.json.decode(answer.content, type=Report)


def refused(server: RunningServer, status: int, **question: Any) -> dict[str, Any]:
    answer = asked(server, **question)
    assert answer.status_code == status, answer.text
    said: dict[str, Any] = answer.json()
    assert said["error"]
    return said


def test_the_report_is_the_one_of_the_command(server: RunningServer) -> None:
    given = Given(card=card_named("H100"))
    said = report(server, text=SCRIPT, gpu="H100", overrides=["trainer.nnodes=1"], language="zh")
    assert said == make_report(read([Source(PASTED, SCRIPT)], ["trainer.nnodes=1"]), given, "zh")
    assert said.derived["sequences_per_step"] == 720
    assert said.memory


def test_files_are_read_in_their_order_and_what_is_told_of_the_machine_wins(server: RunningServer) -> None:
    files = [
        {"name": ".hydra/config.yaml", "text": "trainer: {n_gpus_per_node: 4, nnodes: 1}\n"},
        {"name": "more.yaml", "text": "trainer: {nnodes: 2}\n"},
    ]
    said = report(server, files=files, gpus=8, nodes=3, verl="0.8")
    assert said.derived["gpus"] == 24
    assert (said.version.value, said.version.how) == ("0.8.0", "told")
    assert [one.name for one in said.inputs][:2] == [".hydra/config.yaml", "more.yaml"]


def test_a_model_is_given_by_its_name_or_by_its_config_json(server: RunningServer) -> None:
    named = report(server, text=SCRIPT, model="qwen/qwen3-8b").model
    assert named is not None
    assert named.name == "Qwen3-8B"
    small = report(server, text=SCRIPT, model_config=SMALL, gpu="24GiB")
    assert small.model is not None
    assert (small.model.name, small.model.source) == ("qwen2", "config.json")
    assert small.card is not None
    assert small.card.usable_bytes == 24 * 2**30


def test_defaults_are_told_only_where_they_are_asked_for(server: RunningServer) -> None:
    assert {one.origin.kind for one in report(server, text=SCRIPT).settings} == {"override"}
    assert "default" in {one.origin.kind for one in report(server, text=SCRIPT, all_settings=True).settings}


@pytest.mark.parametrize(
    ("question", "mistake"),
    [
        ({"text": "a: 1\nb: {\n"}, {"name": PASTED, "line": 3, "field": None}),
        ({"files": [{"name": "x.yaml", "text": "\0\1\2" * 99}]}, {"name": "x.yaml", "line": None}),
        ({"text": SCRIPT, "gpu": "G80"}, {"field": "gpu", "name": None}),
        ({"text": SCRIPT, "gpu": "79"}, {"field": "gpu"}),
        ({"text": SCRIPT, "gpu": "1e400"}, {"field": "gpu"}),
        ({"text": SCRIPT, "model": "GPT-7"}, {"field": "model"}),
        ({"text": SCRIPT, "critic_model": "GPT-7"}, {"field": "critic_model"}),
        ({"text": SCRIPT, "model_config": {"a": 1}}, {"field": "model_config"}),
        ({"text": SCRIPT, "model_config": {**SMALL, "num_experts": -1}}, {"field": "model_config"}),
        ({"text": SCRIPT, "host_memory": "much"}, {"field": "host_memory"}),
        ({"text": SCRIPT, "host_memory": "1e400"}, {"field": "host_memory"}),
        ({}, {"field": None}),
    ],
)
@pytest.mark.parametrize("language", wire.LANGUAGES)
def test_a_mistake_is_told_with_its_place_and_what_to_do(
    server: RunningServer, question: dict[str, Any], mistake: dict[str, Any], language: str
) -> None:
    (told,) = refused(server, 422, **question, language=language)["mistakes"]
    assert told | mistake == told
    assert told["message"]
    assert told["remedy"]
    assert (re.search("[\u4e00-\u9fff]", told["remedy"]) is not None) == (language == "zh")


def test_a_version_that_no_release_has_is_a_mistake_too(server: RunningServer) -> None:
    assert refused(server, 422, text=SCRIPT, verl="banana")["mistakes"]


@pytest.mark.parametrize("question", [{"txt": "a"}, {"gpus": 0}, {"overrides": "a=1"}, {"language": "fr"}])
def test_a_question_that_is_not_understood_is_refused(server: RunningServer, question: dict[str, Any]) -> None:
    assert "not understood" in refused(server, 400, **question)["error"]


def test_what_is_too_long_is_refused_before_it_is_read(server: RunningServer) -> None:
    assert str(BYTES_MAX) in refused(server, 413, text="x" * BYTES_MAX)["error"]
    assert refused(server, 422, text="data: {x: 1}\n" * 100_000)["mistakes"]  # it may be sent, and is no configuration


def test_a_live_runs_configuration_is_looked_at_on_the_cards_that_it_is_on(tmp_path: Path) -> None:
    values: dict[str, wire.ConfigValue] = {
        "actor_rollout_ref.model.path": "Qwen/Qwen2.5-7B-Instruct",
        "data.train_batch_size": 64,
        "actor_rollout_ref.rollout.n": 4,
        "trainer.n_gpus_per_node": 8,
    }
    with serving(settings_in(tmp_path)) as server, AgentClient(server) as agent:
        agent.greet(hello(sent_at=time.time(), gpus=4, run="qwen7b"))
        agent.say(wire.Event(seq=1, at=time.time(), run="qwen7b", body=wire.Config(values=values, framework="verl")))
        until("the run's configuration", lambda: server.get("/api/v1/runs").json()[0].get("config"))
        said = report(server, run="qwen7b")
        assert said.card == make_report(read([], ["trainer.nnodes=1"]), Given(card=card_named("H100"))).card
        assert said.derived["gpus"] == 4  # as measured
        assert said.inputs[0].name == "run qwen7b"
        assert report(server, run="qwen7b", gpu="A100-40GB", gpus=2).derived["gpus"] == 2
        assert report(server, run="qwen7b", text=SCRIPT).derived["sequences_per_step"] == 720
        assert "no run" in refused(server, 404, run="other")["error"]


def test_there_is_a_list_of_models_cards_and_templates(server: RunningServer) -> None:
    models = server.get("/api/v1/doctor/models").json()
    assert {"name": "Qwen2.5-7B", "parameters": 7615616512, "verified": True} in models
    cards = {one["name"]: one for one in server.get("/api/v1/doctor/cards").json()}
    assert cards["H100 80GB"]["usable_bytes"] < cards["H100 80GB"]["total_bytes"]
    rows = server.get("/api/v1/doctor/templates?lang=zh").json()
    assert [one["name"] for one in rows] == ["T1", "T2", "T3", "M1", "M2", "M3"]
    assert re.search("[\u4e00-\u9fff]", rows[0]["title"])


@pytest.mark.parametrize("form", ["yaml", "overrides", "script"])
def test_a_template_is_a_file_that_the_doctor_accepts(server: RunningServer, form: str) -> None:
    found = server.get(f"/api/v1/doctor/templates/t2?version=0.8&format={form}").json()
    assert (found["name"], found["version"], found["format"]) == ("T2", "0.8", form)
    assert report(server, text=found["text"], gpu=found["card"], verl=found["version"]).verdict == "fits"


@pytest.mark.parametrize("path", ["T9", "T1?version=0.1", "T1?version=banana"])
def test_a_template_that_there_is_not_is_not_found(server: RunningServer, path: str) -> None:
    answer = server.get(f"/api/v1/doctor/templates/{path}")
    assert answer.status_code == 404
    assert "there " in answer.json()["error"]


def test_every_sentence_of_the_catalogue_is_used() -> None:
    code = Path(oomwatch.web.doctor.__file__).read_text(encoding="utf-8")
    own = {key for key in entries() if key.startswith("doctor.ask.")}
    remedies = {f"doctor.ask.{what}.remedy" for what in ("card", "host", "model", "model_config")}
    assert {key for key in own if f'"{key}"' not in code} == remedies


# ---------------------------------------------------------------- the waiting room


async def _here() -> bool:
    return False


async def _gone() -> bool:
    return True


def test_the_event_loop_goes_on_while_one_is_looked_at_and_others_wait_their_turn() -> None:
    release = threading.Event()
    order: list[int] = []

    def work(number: int) -> int:
        assert release.wait(60)
        order.append(number)
        return number

    async def story() -> list[int]:
        with Practice() as practice:
            waiting = [asyncio.ensure_future(practice.see(lambda n=n: work(n), _here)) for n in range(3)]  # type: ignore[misc]
            await asyncio.sleep(0)  # the loop is free: it comes back here
            assert not order
            release.set()
            return await asyncio.gather(*waiting)

    assert asyncio.run(story()) == [0, 1, 2]
    assert order == [0, 1, 2]


def test_where_too_many_wait_the_next_is_asked_to_come_again() -> None:
    release = threading.Event()

    async def story() -> None:
        with Practice(waiting_max=2) as practice:
            waiting = [asyncio.ensure_future(practice.see(lambda: release.wait(60), _here)) for _ in range(2)]
            await asyncio.sleep(0)
            with pytest.raises(RefusedError, match="ask again in a moment") as caught:
                await practice.see(lambda: None, _here)
            assert caught.value.status == 503
            release.set()
            await asyncio.gather(*waiting)
            assert await practice.see(lambda: 7, _here) == 7

    asyncio.run(story())


def test_what_takes_too_long_is_given_up_and_what_nobody_waits_for_is_not_begun() -> None:
    release = threading.Event()

    async def story() -> None:
        with Practice(within_seconds=0.01) as practice:
            with pytest.raises(RefusedError, match="took longer than"):
                await practice.see(lambda: release.wait(60), _here)
            release.set()
        with Practice() as practice, pytest.raises(ClientGoneError):
            await practice.see(pytest.fail, _gone)

    asyncio.run(story())
