"""What browsers are shown of nodes and runs, and what of it has changed since they were told."""

from collections.abc import Callable, Collection, Iterator

from msgspec.structs import replace

from oomwatch import wire
from oomwatch.core.fleet import Fleet
from oomwatch.core.noderecord import NodeRecord
from oomwatch.core.runrecord import RunRecord
from oomwatch.service.runviews import all_phases_since, last_phases_since, run_view, steps_of
from oomwatch.service.views import at_a_glance, brief_view, gpu_runs, node_tick, node_view, state_of


class Picture:
    """Reads the fleet and changes nothing in it. `skew_of` gives the clock difference of a node's agent."""

    def __init__(self, fleet: Fleet, skew_of: Callable[[str], float]) -> None:
        self._fleet = fleet
        self._skew_of = skew_of
        self._states: dict[str, tuple[wire.NodeState, tuple[str | None, ...]]] = {}  # and the runs of its GPUs
        self._heard: dict[str, None] = {}  # nodes with a reading for the next tick
        self._nodes: dict[str, None] = {}  # new, or with other facts
        self._runs: dict[str, list[wire.StepPoint]] = {}  # changed, with the steps that are new
        self._phases: dict[str, str | None] = {}  # the phase that each run was last seen in
        self._torch: list[wire.TorchPoint] = []
        self.torch_latest: dict[tuple[str, str | None, str | None], wire.TorchPoint] = {}  # by node, GPU and run

    # ------------------------------------------------------------ all of it

    def nodes(self, now: float) -> Iterator[wire.Node]:
        """Each with its latest sample."""
        return (node_view(node, now, skew_seconds=self._skew_of(node.name)) for node in self._fleet.nodes.values())

    def nodes_at_a_glance(self, now: float, in_full: str | None) -> Iterator[wire.Node]:
        """Each with what every view shows of it; the one named `in_full` as if it had been asked for."""
        return (
            self._in_full(node, now) if node.name == in_full else self._at_a_glance(node, now)
            for node in self._fleet.nodes.values()
        )

    def node(self, name: str, now: float) -> wire.Node | None:
        """One node, with what is told to those alone who ask for it. None: no such node is known."""
        record = self._fleet.nodes.get(name)
        return None if record is None else self._in_full(record, now)

    def gpus(self) -> Iterator[tuple[str, wire.GpuFacts]]:
        """Every GPU with the name of its node."""
        return ((node.name, gpu.facts) for node in self._fleet.nodes.values() for gpu in node.gpus.values())

    def runs(self) -> Iterator[wire.Run]:
        return (run_view(run, steps_of(run), all_phases_since(run)) for run in self._fleet.runs.values())

    def _at_a_glance(self, node: NodeRecord, now: float) -> wire.Node:
        return at_a_glance(brief_view(node, now, skew_seconds=self._skew_of(node.name)))

    def _in_full(self, node: NodeRecord, now: float) -> wire.Node:
        return replace(node_view(node, now, skew_seconds=self._skew_of(node.name)), together=node.together)

    # ------------------------------------------------------------ changes

    def note(self, message: wire.AgentMessage, node: str) -> None:
        """The fleet has taken a message in: remember what that changes."""
        if isinstance(message, wire.Sample):
            self._heard[node] = None
        elif isinstance(message, wire.Event):
            self._note_event(message, node)
        elif isinstance(message, wire.Hello):
            self._nodes[node] = None
            if message.run:
                self._runs.setdefault(message.run, [])

    def _note_event(self, event: wire.Event, node: str) -> None:
        if isinstance(event.body, wire.TorchMemory) and not event.backlog:
            point = wire.TorchPoint(at=event.at, node=node, memory=event.body, run=event.run)
            self._torch.append(point)
            self.torch_latest[node, event.body.gpu, event.run] = point
        record = self._fleet.nodes.get(node)
        name = event.run or (record and (record.hello.run or record.sole_run()))
        run = self._fleet.runs.get(name or "")
        if run is not None and self._changes(run, event.body):
            new_steps = self._runs.setdefault(run.name, [])
            last = [*steps_of(run)][-1:]
            new_steps += [point for point in last if point.step is event.body]  # else it was known already

    def _changes(self, run: RunRecord, body: wire.EventBody) -> bool:
        """Whether an event makes the run other than it was shown: new, in another phase, or with more known of it."""
        is_new, phase_before, phase = run.name not in self._phases, self._phases.get(run.name), run.timeline.current()
        self._phases[run.name] = phase
        return is_new or phase != phase_before or isinstance(body, wire.Step | wire.Reshard | wire.Config | wire.Probe)

    def changes(self, now: float) -> list[wire.LiveMessage]:
        """Nodes and runs that are new or changed."""
        self._note_states(now)
        fleet = self._fleet
        nodes = [
            wire.NodeChanged(node=self._at_a_glance(fleet.nodes[name], now))
            for name in self._nodes
            if name in fleet.nodes
        ]
        runs = [
            wire.RunChanged(run=run_view(run, new, last_phases_since(run)))
            for name, new in self._runs.items()
            if (run := fleet.runs.get(name)) is not None
        ]
        self._nodes, self._runs = {}, {}
        return [*nodes, *runs]

    def _note_states(self, now: float) -> None:
        for name, node in self._fleet.nodes.items():
            state = (state_of(node, now), gpu_runs(node))
            if self._states.get(name) != state:
                self._states[name] = state
                self._nodes[name] = None

    def forget(self, nodes: Collection[str], runs: Collection[str]) -> wire.Forgotten:
        """These are no more in the fleet: keep nothing of them, so that one that comes back is new."""
        for node in nodes:
            for of_node in (self._states, self._heard, self._nodes):
                of_node.pop(node, None)
        for run in runs:
            self._runs.pop(run, None)
            self._phases.pop(run, None)
        self.torch_latest = {
            key: point for key, point in self.torch_latest.items() if key[0] not in nodes and key[2] not in runs
        }
        return wire.Forgotten(nodes=tuple(nodes), runs=tuple(runs))

    def readings(self, now: float) -> list[wire.LiveMessage]:
        """The tick of the nodes heard since the last one, and torch's figures."""
        fleet, heard, torch = self._fleet, self._heard, self._torch
        self._heard, self._torch = {}, []
        return [
            wire.Tick(at=now, nodes=tuple(node_tick(fleet.nodes[name]) for name in heard if name in fleet.nodes)),
            *torch,
        ]
