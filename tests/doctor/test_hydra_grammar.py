"""Our reading of one override against Hydra's own parser.

An empty key is none of ours: Hydra's parser lets it pass, and what comes after it stops there.
"""

import itertools
import math
import string

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override as HydrasOverride
from hydra.core.override_parser.types import OverrideType, QuotedString
from hydra.errors import HydraException
from hypothesis import given, settings
from hypothesis import strategies as st

from oomwatch.doctor.read.grammar import NoOverrideError, Override, parse_override

SIGNS = {OverrideType.CHANGE: "", OverrideType.ADD: "+", OverrideType.FORCE_ADD: "++", OverrideType.DEL: "~"}
PARSER = OverridesParser.create()

VALUES = [
    "", "1", "-1", "+1", "007", "1_000", "1e-6", "1E5", ".5", "5.", "-.5e+3", "1_0.5", "inf", "-inf", "nan", "0x10",
    "1e", "1.2.3", "true", "False", "TRUE", "null", "NULL", "None", "nullable", "true1", "vllm",
    "Qwen/Qwen2.5-7B-Instruct", "~/models/x", "hdfs://a:9000/b", "a b", " a", "a ", "a  b", "'a b'", '"a b"',
    "'a\\'b'", "'a\\\\'", "'it''s'", "'a'b", "a'b'", "''", "[]", "[1]", "[1,2]", "[ 1 , 2 ]",
    "[a,'b c',1.5,null,True]", "[1,[2,3]]", "[1,2", "1]", "[,]", "[1,]", "['console','wandb']",
    '["console","wandb"]', "{}", "{a:1}", "{a: 1, b: [x]}", "{a:{b:c}}", "{a:1,}", "{a}", "{1:2}", "{'a':1}", "1,2",
    "a,b,c", "(1)", "int(3.7)", "int('3')", "float(3)", "str(3)", "str(true)", "bool(false)", "bool('true')",
    "int([1.5,2])", "str([1,2])", "glob(*)", "choice(1,2)", "range(3)", "unknown(3)", "int()", "int(x)",
    "int(value=3)", "${data.n}", "${oc.env:HOME,x}", "a${b}c", "${a", "$HOME/x", "$", "a$b", "a=b", "\\,", "a\\,b",
    "\\\\", "a\\ b", "\\=", "#1", "a#b", "&", "a;b", "!x", "a|b", "a?b", "*", "%s", "@x", "a@b", "<x>", "^", "`x`",
    "1:30", "a:b", "中文", "'中文'", "é", "2024-01-01", "1-2", "--x", "-", "+", ".", "..", "/a/b", "a/b", "[a b]",
    "[a  b , c]", "\ta\t", "a\tb", "all-linear", "[q_proj,v_proj]", "1e5x", "0.6", "00", "1__0", "yes", "on", "~",
]  # fmt: skip
KEYS = [
    "a", "a.b", "a.b-c", "a.0", "0", "a-b", "a..b", ".a", "a.", "a/b", "a/b@c", "a@b", "a@b.c", "a@", "_x", "$x",
    "a b", "-a", "a:b", "actor@actor_rollout_ref.actor", "a.01", "a.b@c", "A.B_c.d", "a/b.c", "1a", "a.1a", "a=b",
]  # fmt: skip

SIGNIFICANT = [*"a1.,[]{}:= '", '"', "\\", "int(", ")", "${b}"]


def plain(value: object) -> object:
    if isinstance(value, QuotedString):
        return value.text
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {str(plain(key)): plain(one) for key, one in value.items()}
    return "nan" if isinstance(value, float) and math.isnan(value) else value


def hydras(text: str) -> tuple[object, ...] | None:
    try:
        found: HydrasOverride = PARSER.parse_override(text)
    except HydraException:
        return None
    value = None if found.is_sweep_override() else plain(found.value())
    return SIGNS[found.type], found.key_or_group, found.package, found.is_sweep_override(), value


def ours(text: str) -> tuple[object, ...] | None:
    try:
        found: Override = parse_override(text)
    except NoOverrideError:
        return None
    return found.sign, found.key, found.package, found.sweeps, None if found.sweeps else plain(found.value)


@pytest.mark.parametrize("value", VALUES)
def test_a_value_is_what_hydra_takes_it_for(value: str) -> None:
    texts = [f"{sign}a.b={value}" for sign in ("", "+", "++", "~")]
    assert {text: ours(text) for text in texts} == {text: hydras(text) for text in texts}


@pytest.mark.parametrize("key", KEYS)
def test_a_key_is_what_hydra_takes_it_for(key: str) -> None:
    signs, ends = ("", "+", "++", "~", "+++", "~~", "--"), ("=1", "", "=", " = 1")
    texts = [f"{sign}{key}{end}" for sign, end in itertools.product(signs, ends)]
    assert {text: ours(text) for text in texts} == {text: hydras(text) for text in texts}


@settings(max_examples=400, deadline=None)
@given(st.text(alphabet=string.printable + "é中", max_size=12))
def test_any_value_is_what_hydra_takes_it_for(value: str) -> None:
    assert ours(f"a={value}") == hydras(f"a={value}")


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(SIGNIFICANT), max_size=9))
def test_any_sequence_of_signs_is_what_hydra_takes_it_for(pieces: list[str]) -> None:
    text = "a=" + "".join(pieces)
    assert ours(text) == hydras(text)
