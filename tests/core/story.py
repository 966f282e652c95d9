"""Tell the engine a story and hear what it says: the scaffold of the core's tests.

A Story keeps the time, so that a test reads as what happened: at 10 s this, at 40 s that, and then these transitions.
"""

from collections.abc import Callable
from pathlib import Path

from oomwatch import wire
from oomwatch.core.engine import Engine
from oomwatch.core.rule import Rule, RuleSet
from oomwatch.rulefile import parse_rules, read_rules

GIB = 2**30
CARD_BYTES = 80 * GIB
SHIPPED = read_rules(Path(__file__).resolve().parents[2] / "alerts.yaml").rules


def rules_of(yaml_entry: str) -> RuleSet:
    """A rule set with one rule, its summary filled in."""
    return parse_rules("rules:\n  - alert: it\n    summary: it\n" + yaml_entry).rules


def shipped(alert: str, severity: str | None = None) -> RuleSet:
    """One rule of the shipped alerts.yaml, alone."""
    rules = tuple(rule for rule in SHIPPED.rules if rule.alert == alert and severity in (None, rule.severity))
    assert rules, f"alerts.yaml has no rule {alert}"
    return RuleSet(rules=rules)


class Story:
    """One node `n` with `gpus` cards of 80 GiB, told second by second. Every transition lands in `heard`."""

    def __init__(
        self,
        rules: RuleSet | tuple[Rule, ...],
        *,
        gpus: int = 1,
        run: str | None = None,
        addresses: tuple[str, ...] = (),
        engine: type[Engine] = Engine,
    ) -> None:
        self.engine = engine(rules if isinstance(rules, RuleSet) else RuleSet(rules=rules))
        self.now = 0.0
        self.heard: list[wire.Transition] = []
        self.run = run
        self._seq = 0
        self.hello("n", gpus=gpus, addresses=addresses)

    def hello(
        self,
        node: str,
        *,
        gpus: int = 1,
        limit_bytes: int | None = None,
        session: str = "s1",
        addresses: tuple[str, ...] = (),
    ) -> None:
        facts = wire.NodeFacts(
            gpus=tuple(
                wire.GpuFacts(gpu=str(index), uuid=f"GPU-{node}-{index}", name="H100", total_bytes=CARD_BYTES)
                for index in range(gpus)
            ),
            host=wire.HostFacts(memory_total_bytes=1000 * GIB, memory_limit_bytes=limit_bytes, addresses=addresses),
        )
        self._observe(
            wire.Hello(
                protocol=1,
                agent_version="0",
                node=node,
                session=session,
                sent_at=self.now,
                interval_seconds=1,
                facts=facts,
                run=self.run,
            ),
            node,
        )

    # ------------------------------------------------------------ telling

    def wait(self, seconds: float, each_second: Callable[["Story"], object] | None = None) -> "Story":
        """Let time pass on the one-second grid; `each_second` tells what the sources say meanwhile."""
        for _ in range(round(seconds)):
            self.now += 1
            if each_second is not None:
                each_second(self)
            self.heard += self.engine.advance(self.now)
        return self

    def used(self, gib: float, *, gpu: str = "0", node: str = "n") -> "Story":
        return self.sample(wire.GpuSample(gpu=gpu, used_bytes=int(gib * GIB)), node=node)

    def sample(
        self,
        *gpus: wire.GpuSample,
        host: wire.HostSample | None = None,
        torch: tuple[wire.TorchSample, ...] = (),
        node: str = "n",
        at: float | None = None,
    ) -> "Story":
        self._seq += 1
        moment = self.now if at is None else at
        self._observe(wire.Sample(seq=self._seq, at=moment, gpus=gpus, host=host, torch=torch), node)
        return self

    def event(
        self,
        body: wire.EventBody,
        *,
        node: str = "n",
        run: str | None = "r",
        pid: int | None = None,
        ip: str | None = None,
        backlog: bool = False,
    ) -> "Story":
        self._seq += 1
        origin = wire.Origin(source="driver.log", pid=pid, ip=ip)
        self._observe(wire.Event(seq=self._seq, at=self.now, body=body, run=run, origin=origin, backlog=backlog), node)
        return self

    def step(self, number: int, rollout_seconds: float = 30.0, **more: float | None) -> "Story":
        """A training step's line, with its rollout time."""
        return self.event(wire.Step(step=number, rollout_seconds=rollout_seconds, **more))  # type: ignore[arg-type]

    def _observe(self, message: wire.AgentMessage, node: str) -> None:
        self.heard += self.engine.observe(message, node, self.now)

    # ------------------------------------------------------------ hearing

    @property
    def said(self) -> list[tuple[float, str, str]]:
        """(time, alert, state) of everything heard."""
        return [(one.at, one.alert, one.state) for one in self.heard]

    @property
    def states(self) -> list[str]:
        return [one.state for one in self.heard]
