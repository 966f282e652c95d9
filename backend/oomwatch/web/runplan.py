"""A live run's configuration and machine, as the server knows them: what the doctor is asked about."""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from oomwatch import wire
from oomwatch.doctor.read import Source
from oomwatch.plan.cards import Card, card_named
from oomwatch.service.service import Service


class RunPlan(NamedTuple):
    """Cards and counts are as measured; None where they are not known, or differ from node to node."""

    source: Source
    card: Card | None
    gpus_of_node: int | None
    nodes: int | None


def plan_of_run(service: Service, name: str) -> RunPlan | None:
    """None: no such run is known."""
    run = next((one for one in service.picture.runs() if one.run == name), None)
    if run is None:
        return None
    nodes = [one for one in service.picture.nodes(service.clock()) if one.node in run.nodes]
    cards = [[facts.name for facts in _cards(node, name)] for node in nodes]
    kinds = {kind for of_node in cards for kind in of_node}
    counts = {len(of_node) for of_node in cards if of_node}
    same = len(counts) == 1 and len(nodes) == len(run.nodes)
    settings = msgspec.json.format(msgspec.json.encode(run.config), indent=1)
    return RunPlan(
        source=Source(f"run {name}", settings),
        card=card_named(kinds.pop()) if len(kinds) == 1 else None,
        gpus_of_node=counts.pop() if same else None,
        nodes=len(cards) if same else None,
    )


def _cards(node: wire.Node, run: str) -> Iterator[wire.GpuFacts]:
    """The cards of a node that a run is on."""
    runs = node.gpu_runs or (node.run,) * len(node.facts.gpus)
    return (facts for facts, of in zip(node.facts.gpus, runs, strict=False) if of == run)
