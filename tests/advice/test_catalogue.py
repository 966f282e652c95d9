"""The catalogue of remedies is whole: known causes, known keys, both languages, a price and a source; all reachable."""

import re

import pytest
from scripts import translations
from tests.advice.runs import CONFIG, FORK, MEGATRON, OLD, ROLLOUT, device, host, speed, switch
from tests.advice.write_page import PATHS, page
from tests.core.story import GIB

from oomwatch import wire
from oomwatch.advice import remedies
from oomwatch.advice.catalogue import Entry, entries
from oomwatch.advice.changes import CHANGES, FREES
from oomwatch.advice.choose import BEST, options_for
from oomwatch.advice.conditions import CONDITIONS
from oomwatch.core.facts import Facts
from oomwatch.plan.verlkeys import NO_RELEASE_HAS, STRATEGIES, having
from oomwatch_agent.logs.config_keys import ALLOWED

EACH = pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.remedy)
PAGE = PATHS["en"].read_text(encoding="utf-8")
HAN = re.compile(r"[\u4e00-\u9fff]")


@EACH
def test_a_remedy_is_for_known_causes_and_says_how_well_it_fits(entry: Entry) -> None:
    assert entry.causes
    assert set(entry.causes) <= set(wire.CAUSES)
    assert all(0 < fits <= 1 for fits in entry.causes.values())


@EACH
def test_a_remedy_is_said_in_both_languages_with_its_price_and_its_source(entry: Entry) -> None:
    for words in (entry.text, entry.price):
        assert words.en.strip()
        assert not HAN.search(words.en)
        assert HAN.search(words.zh)
    assert entry.source.strip()


@EACH
def test_a_remedy_names_only_keys_that_some_verl_has_or_that_are_a_forks(entry: Entry) -> None:
    known = {key for key in entry.keys for strategy in STRATEGIES if having(key, strategy)}
    assert set(entry.keys) == known | (set(entry.keys) & set(NO_RELEASE_HAS))
    assert bool(entry.keys) == (entry.change is not None), "a setting needs a way to work its value out"
    assert all(key in ALLOWED for key in entry.keys), "an agent does not send it, so that it is never known"


@EACH
def test_a_remedy_names_only_what_the_code_knows(entry: Entry) -> None:
    assert entry.change is None or entry.change in CHANGES
    assert "frees" not in entry.with_ or entry.with_["frees"] in {*FREES, "half_of_active"}
    assert set(entry.when) <= set(CONDITIONS)
    assert set(entry.phases) <= set(wire.PHASES)
    assert 0 < entry.strength <= 1


def test_no_two_remedies_have_one_name() -> None:
    names = [entry.remedy for entry in entries()]
    assert len(names) == len(set(names))


def test_all_that_the_code_knows_is_used() -> None:
    assert {entry.change for entry in entries() if entry.change} == set(CHANGES)
    assert {name for entry in entries() for name in entry.when} == set(CONDITIONS)
    assert {entry.with_["frees"] for entry in entries() if "frees" in entry.with_} - {"half_of_active"} == set(FREES)


def test_every_key_that_is_listed_as_no_releases_is_some_remedys_and_no_releases() -> None:
    assert set(NO_RELEASE_HAS) <= {key for entry in entries() for key in entry.keys}
    assert not any(having(key, strategy) for key in NO_RELEASE_HAS for strategy in STRATEGIES)


def test_every_cause_has_a_remedy() -> None:
    assert {cause for entry in entries() for cause in entry.causes} == set(wire.CAUSES)


# Runs that among them call for every remedy there is.
VARIANTS: tuple[dict[str, wire.ConfigValue], ...] = (
    {},
    {"actor_rollout_ref.rollout.free_cache_engine": False},
    {"actor_rollout_ref.rollout.gpu_memory_utilization": 0.3},
    {"actor_rollout_ref.actor.use_dynamic_bsz": True, "critic.use_dynamic_bsz": True},
    {"actor_rollout_ref.model.enable_gradient_checkpointing": False},
    {"critic.model.enable_gradient_checkpointing": False},
    {"actor_rollout_ref.actor.strategy": "fsdp2"},
)
CALLS: tuple[tuple[Facts, dict[str, wire.ConfigValue], str | None], ...] = (
    *(
        (device(phase, CONFIG | config, **known), CONFIG | config, "0.9.1")
        for phase in ("rollout", "old_log_prob", "ref", "values", "update_critic", "update_actor", "save_checkpoint")
        for known in ({"needed_bytes": 6.0 * GIB}, {"steps_left": 20.0})
        for config in VARIANTS
    ),
    (device("update_actor", OLD), OLD, "0.4.1"),
    (device("update_actor", MEGATRON), MEGATRON, "0.9.1"),
    (device("update_weights"), FORK, None),
    (device("reward"), CONFIG, "0.9.1"),
    (device("reward"), OLD, "0.4.1"),
    *((host(by), CONFIG | {f"{ROLLOUT}.layered_summon": True}, "0.9.1") for by in ("container", "machine")),
    (host("machine", topic="disk"), CONFIG, "0.9.1"),
    (host("machine"), FORK, None),
    (speed(), CONFIG, "0.9.1"),
    (switch(), CONFIG, "0.9.1"),
)  # fmt: skip


def test_every_remedy_can_be_reached() -> None:
    reached = {
        option.entry.remedy
        for facts, config, version in CALLS
        for cause in wire.CAUSES
        for option in options_for(wire.Cause(cause=cause, score=0.5, phase=facts.phase), config, facts, version)
    }
    assert {entry.remedy for entry in entries()} - reached == set()


@pytest.mark.parametrize("cause", wire.CAUSES)
def test_what_is_advised_is_few_and_each_line_can_be_copied(cause: str) -> None:
    for facts, config, version in CALLS:
        advised = remedies([wire.Cause(cause=cause, score=0.5, phase=facts.phase)], config, facts, version=version)
        assert len(advised) <= BEST
        for one in advised:
            assert set(one.texts) == set(one.price) == set(wire.LANGUAGES)
            assert "{" not in one.texts["en"] + one.texts["zh"]
            assert (one.override is None) == (one.value_to is None)
            if one.override is not None:
                assert re.fullmatch(r"[a-z_.]+=[\w.\[\],-]+", one.override)
                assert one.override.startswith(f"{one.key}=")
                assert one.value_to != one.value_from


# ---------------------------------------------------------------- the page


@EACH
def test_a_remedy_is_on_the_page(entry: Entry) -> None:
    row = next((row for row in PAGE.splitlines() if row.startswith(f"| `{entry.remedy}`")), "")
    assert row, f"docs/reference/advice.md: run python -m tests.advice.write_page to add {entry.remedy}"
    assert all(f"`{key}`" in row for key in entry.keys)
    assert all(cause in row for cause in entry.causes)
    assert entry.source in row


@pytest.mark.parametrize("cause", wire.CAUSES)
def test_a_cause_is_on_the_page(cause: str) -> None:
    assert f"| `{cause}` |" in PAGE


@pytest.mark.parametrize("language", wire.LANGUAGES)
def test_the_page_is_the_one_that_the_data_makes(language: wire.Language) -> None:
    found = translations.without_head(PATHS[language])
    assert found == page(language), "run python -m tests.advice.write_page and see what changed"
