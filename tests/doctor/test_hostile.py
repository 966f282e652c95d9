"""Wrong input: a clear message within a second, and never anything else."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fuzz.targets import assert_told

from oomwatch import wire
from oomwatch.doctor.read import ReadingError, Source, read
from oomwatch.doctor.read.words import words_of

LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(9)
)
VERL = "python3 -m verl.trainer.main_ppo "
WITHIN_S = 5.0  # a second on a machine of its own; these share two cores with all other tests


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("noise.bin", bytes(range(256)) * 500, "binary"),
        ("image.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + b"\0\xff" * 5000, "binary"),
        ("huge.yaml", b"data: {x: 1}\n" * 4_000_000, "too_large"),
        ("wide.yaml", "data:\n" + "".join(f"  k{n}: {n}\n" for n in range(50_000)), "too_large"),
        ("laughs.yaml", LAUGHS, "no_yaml"),
        ("deep.yaml", "{a: " * 5000, "no_yaml"),
        ("deep.yaml", "\n".join(" " * n + f"k{n}:" for n in range(300)), "no_yaml"),
        ("deep.json", "[" * 100_000, "no_yaml"),
        ("circle.yaml", "a: &a\n  b: *a\n", "no_yaml"),
        ("broken.yaml", "data:\n  a: [1, 2\nb: }\n", "no_yaml"),
        ("text.yaml", "--- just a text\n", "no_mapping"),
        ("empty", "", "no_settings"),
        ("blank", " \n\t\n", "no_settings"),
        ("prose.md", "# Heading\n\nSome text that says nothing, it's about nothing.\n", "unclosed"),
        ("prose.txt", "Some text that says nothing.\n", "no_settings"),
        ("dots.txt", "algor" + "." * 150_000 + "it&hm", "no_settings"),
        ("slashes.txt", "/" * 150_000 + "!", "no_settings"),
        ("path.txt", "a/b." * 40_000 + "!", "no_settings"),
        ("open.sh", VERL + "'data.train_batch_size=60", "unclosed"),
        ("bomb.sh", "A=xxxxxxxxxx\n" + "A=$A$A\n" * 60 + VERL + "data.x=$A", "expands_too_far"),
        ("deep.sh", VERL + "data.x=" + "$(" * 3000, "unclosed"),
        ("cut.log", "(A pid=7) {'actor_rollout_ref': {'actor': {'x': 1,\n(A pid=7)  'y'", "printed_cut"),
        ("called.log", "{'actor_rollout_ref': {'x': __import__('os').system('ls')}}", "printed_cut"),
        ("deep.log", "{'actor_rollout_ref': {" + "'a': {" * 5000, "printed_cut"),
        ("many.sh", VERL + " ".join(f"+data.k{n}=1" for n in range(3000)), "too_many_overrides"),
    ],
)  # fmt: skip
def test_wrong_input_gets_a_clear_message_within_a_second(name: str, content: str | bytes, what: str) -> None:
    before = time.process_time()
    with pytest.raises(ReadingError) as caught:
        read([Source(name, content)])
    assert (caught.value.what, caught.value.name) == (what, name)
    assert all(words_of(caught.value, language) for language in wire.LANGUAGES)
    assert time.process_time() - before < WITHIN_S


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("tag.yaml", "a: !!python/object/apply:os.system [ls]\n"),
        ("deep.sh", VERL + "data.x=" + "${A:-" * 3000 + "}" * 3000),
        ("deep.txt", "data.x=" + "[" * 15_000),
        ("long.sh", VERL + 'data.x="' + "x" * 150_000 + '"'),
        ("refers.yaml", "a: '" + "${" * 5_000 + "}" * 5_000 + "'"),
    ],
)
def test_odd_settings_are_read_for_what_they_are_within_a_second(name: str, content: str) -> None:
    before = time.process_time()
    reading = read([Source(name, content)], (), "0.5")
    assert reading.unknown or reading.complaints
    assert time.process_time() - before < WITHIN_S


@pytest.mark.parametrize("version", ["0.1", "banana", "", "1", "0.9; rm", "９.９", "x" * 500])
def test_an_unknown_version_is_refused_with_those_that_are_known(version: str) -> None:
    with pytest.raises(ReadingError) as caught:
        read([], ["data.train_batch_size=60"], version)
    assert caught.value.what == "unknown_version"
    assert "0.9" in words_of(caught.value, "en").what


def test_a_newer_version_counts_as_the_newest_and_is_said() -> None:
    reading = read([], ["data.train_batch_size=60", "actor_rollout_ref.rollout.name=vllm"], "0.11.2")
    assert (reading.version, [one.what for one in reading.complaints]) == ("0.9.1", ["newer_version"])


@pytest.mark.parametrize("text", ["a: ${a}", "a: ${b}\nb: ${a}", "a: ${a}${a}\n", "a: '${oc.select:a,1}'"])
def test_a_circle_of_references_is_said_and_ends(text: str) -> None:
    reading = read([Source("run.yaml", text + "\n")], (), "0.5")
    assert {one.what for one in reading.complaints} == {"circular_reference"}


def test_references_that_double_at_each_step_end() -> None:
    text = "a0: xxxxxxxxxx\n" + "".join(f"a{n}: ${{a{n - 1}}}${{a{n - 1}}}\n" for n in range(1, 40))
    reading = read([Source("run.yaml", text)], (), "0.5")
    assert {one.what for one in reading.complaints} == {"references_too_deep"}


def test_the_environment_is_never_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OOMWATCH_SECRET", "0123")
    text = "data:\n  a: ${oc.env:OOMWATCH_SECRET}\n  b: ${oc.env:OOMWATCH_SECRET,7}\n"
    reading = read([Source("run.yaml", text), Source("x.sh", VERL + "trainer.nnodes=$OOMWATCH_SECRET")], (), "0.5")
    assert "0123" not in str(reading)
    assert [one.what for one in reading.complaints] == ["unresolved_variable", "environment"]
    assert reading.config["data.b"] == "7"


SIGNIFICANT = [
    "data", ".", "a", "=", ":", " ", "\n", "\\", "'", '"', "$", "{", "}", "(", ")", "[", "]", "#", "-", "+", "~",
    "@", "*", "&", "!", "|", ">", "<", ";", "`", "<<", "EOF", "${a}", "${data.a}", "${", "oc.env:",
    "python3 -m verl.trainer.main_ppo ", "\t", "\r\n", "\x00", "data.a=1", "data:\n  a: ",
    "{'actor_rollout_ref': {", "if ", "then ", "fi ", "for ", "case ", "A=", "$A", "$((", "))", "é", "中", "\ud800",
    "\ufeff", "%", ",", "1", "null", "---", "- ", "? ", "<<: *a", "defaults:", "hydra:", "??", "???",
]  # fmt: skip
PIECES = st.sampled_from(SIGNIFICANT)


@settings(max_examples=800, deadline=None)
@given(st.lists(PIECES, max_size=25).map("".join))
def test_any_text_is_read_or_refused(text: str) -> None:
    assert_told([Source("-", text)], [])


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    assert_told([Source("-", data)], [])


@settings(max_examples=400, deadline=None)
@given(st.lists(st.lists(PIECES, max_size=8).map("".join), max_size=4))
def test_any_overrides_are_read_or_refused(overrides: list[str]) -> None:
    assert_told([], overrides)
