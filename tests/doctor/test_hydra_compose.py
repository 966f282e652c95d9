"""Our putting together of a configuration against Hydra's and OmegaConf's own: the same values, the same stops."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from oomwatch.doctor.read.apply import Overriding
from oomwatch.doctor.read.layers import Given
from oomwatch.doctor.read.reading import Origin
from oomwatch.doctor.read.references import References, UnresolvedError
from oomwatch.doctor.read.tree import Tree
from oomwatch.doctor.read.yamlfile import read_yaml
from oomwatch.plan.verlkeys import STRATEGIES, Strategy, keys_of, releases

SMALL = """\
a: 1
b: {c: 2, d: {e: null}}
l: [1, 2]
o: {}
r: ${b.c}
n: null
m: ???
broken: ${nope}
s: text
section: ${b}
"""
OVERRIDES = [
    "a=2", "b=5", "b={c:3}", "b={z:3}", "+b={z:3}", "b={d:{e:1}}", "b={d:{f:1}}", "b.d.e=1", "b.d.e.f=1",
    "+b.d.e.f=1", "n.x=1", "+n.x=1", "n.x.y=2", "++n.x.y=2", "a.x=1", "+a.x=1", "o.x=1", "+o.x=1", "o={x:1}",
    "+o={x:1}", "o={}", "l=[3]", "l.0=7", "l.5=7", "+l.5=7", "++l.1=9", "+l.0=3", "l=x", "+l=[4]", "+a=2", "+n=2",
    "+m=2", "m=2", "~a", "~a=1", "~a=3", "~b", "~b.d", "~b.d.e", "~zz", "~n", "~m", "~l.0", "+r=5", "r=5", "~r",
    "~broken", "+broken=1", "broken=2", "b=null", "b.c={x:1}", "a={x:1}", "+a={x:1}", "+a=[1]", "d=1", "++a=5",
    "++zz.y=5", "+zz=1", "b/c=1", "x@y=1", "+x@y=1", "a=1,2", "l.x=1", "+l.x=1", "o=null", "b.d={}", "b.d.e={}",
    "~b.d={e:null}", "hydra.run.dir=x", "+hydra.foo=1", "~l", "r.x=1", "+r.x=1", "+b=5", "+b.d=5", "+o=5",
    "s='a,b'", "s='\"a,b\"'", "a=${b.c}", "a=nope=", "a", "a b=1", "a=", "+n=", "section=1", "+section=1",
    "~section", "s=[a,{b:c}]", "b.c=[1,2]", "+new.deep.key={x:{y:[1]}}", "b={}", "+b={}", "n={}", "n={x:1}",
    "+n={x:1}", "l={x:1}",
]  # fmt: skip
Outcome = dict[str, Any] | None  # None: it stops


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("configs")
    (folder / "small.yaml").write_text(SMALL, encoding="utf-8")
    with initialize_config_dir(str(folder), version_base=None):
        yield folder


def hydras(*overrides: str) -> Outcome:
    try:
        found = OmegaConf.to_container(compose("small", list(overrides)), resolve=False)
    except Exception:  # Hydra raises whatever comes to it
        return None
    assert isinstance(found, dict)
    return {str(key): value for key, value in found.items()}


def ours(*overrides: str) -> Outcome:
    tree, origin = Tree(), Origin(kind="file", name="small.yaml")
    for leaf in read_yaml(SMALL, "small.yaml").leaves:
        tree.put(leaf.key, leaf.value, origin)
    overriding = Overriding(tree)
    for text in overrides:
        overriding.put(Given(text, Origin(kind="override", name="command line")))
    if overriding.choices or any(complaint.severity == "error" for complaint in overriding.complaints):
        return None
    return whole(tree, lambda key: tree[key].value)


def whole(tree: Tree, value_of: Any) -> dict[str, Any]:
    names = dict.fromkeys(key.split(".")[0] for key in tree.leaves())
    return {name: value_of(name) if tree.get(name) else tree.nested(name, value_of) for name in names}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("text", OVERRIDES)
def test_one_override_does_what_hydra_does(text: str) -> None:
    assert ours(text) == hydras(text)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("second", OVERRIDES[::8])
@pytest.mark.parametrize("first", ["a=2", "b=null", "~b", "+o.x=1", "+n.x=1", "+new.deep.key={x:{y:[1]}}", "l=x"])
def test_one_override_after_another_does_what_hydra_does(first: str, second: str) -> None:
    assert ours(first, second) == hydras(first, second)


CHANGES = [
    "data.max_prompt_length=2048", "data.max_response_length=4096", "actor_rollout_ref.rollout.n=12",
    "++actor_rollout_ref.actor.use_dynamic_bsz=True", "++actor_rollout_ref.actor.ppo_max_token_len_per_gpu=30000",
    "actor_rollout_ref.model.path=/m/x", "trainer.project_name=p",
    "trainer.experiment_name='${trainer.project_name}-1'", "trainer.n_gpus_per_node=4",
    "actor_rollout_ref.rollout.name=vllm", "++actor_rollout_ref.actor.ppo_epochs=2",
]  # fmt: skip


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("release", releases())
def test_the_references_of_every_release_lead_where_omegaconf_says(release: str, strategy: Strategy) -> None:
    tree, origin = Tree(), Origin(kind="default", name="verl")
    for key, value in keys_of(release, strategy).items():
        tree.put(key, value, origin)
    overriding = Overriding(tree)
    for text in CHANGES:
        overriding.put(Given(text, origin))
    assert overriding.complaints == []
    config = OmegaConf.create(whole(tree, lambda key: tree[key].value))
    references = References(tree)
    for key in tree.leaves():
        assert resolved(references, key) == omegaconfs(config, key), key


def resolved(references: References, key: str) -> object:
    try:
        return references.value(key)
    except UnresolvedError:
        return "unresolved"


def omegaconfs(config: Any, key: str) -> object:
    if OmegaConf.is_missing(
        OmegaConf.select(config, key.rpartition(".")[0]) if "." in key else config, key.rpartition(".")[2]
    ):
        return "???"
    try:
        found = OmegaConf.select(config, key, throw_on_missing=True)
    except Exception:  # whatever OmegaConf finds wrong with a reference
        return "unresolved"
    return OmegaConf.to_container(found, resolve=True) if OmegaConf.is_config(found) else found


REFERENCES = """\
a: {x: 1, y: "${.x}", z: "${..c}", w: "${a.y}-${c}", list: [1, "${c}", "${a.x}"]}
c: text
d: "${oc.select:a.x}"
e: "${oc.select:nope,5}"
f: "${oc.select:nope,'quoted, text'}"
g: "${oc.select:nope}"
h: "${oc.select:a.nope,${c}}"
i: "${oc.select:nope,[1,2]}"
j: "${oc.select:nope,{p: 1}}"
k: "${oc.env:OOMWATCH_TESTS_NEVER_SET,7}"
l: "${oc.env:OOMWATCH_TESTS_NEVER_SET,null}"
m: "${oc.decode:'[1, 2.5]'}"
n: "${a}"
o: "${n.x}"
p: "${a.list}"
q: "${a.list.1}"
r: "${a.list[2]}"
s: "${nope}"
t: "${t}"
u: "${v}"
v: "${u}"
w: "a ${c} b ${a.x}"
x: "${oc.dict.keys:a}"
y: "${a.${key}}"
key: x
z: "${oc.select:.c}"
aa: "${unknown:1}"
bb: "${oc.select:s,3}"
cc: "${ c }"
dd: "${oc.select: a.x , 5 }"
ee: "${oc.create:{p: 2}}"
ff: "\\\\${c}"
gg: "${oc.select:missing,9}"
missing: ???
hh: "${missing}"
"""


def test_every_kind_of_reference_leads_where_omegaconf_says() -> None:
    tree, origin = Tree(), Origin(kind="file", name="x.yaml")
    for leaf in read_yaml(REFERENCES, "x.yaml").leaves:
        tree.put(leaf.key, leaf.value, origin)
    config, references = OmegaConf.create(REFERENCES), References(tree)
    found = {key: (resolved(references, key), omegaconfs(config, key)) for key in tree.leaves()}
    assert {key: pair for key, pair in found.items() if pair[0] != pair[1]} == {}
