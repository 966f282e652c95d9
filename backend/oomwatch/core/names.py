"""What runs are called, on nodes that know only the job that they work for.

The node with a run's driver tells that what goes by the job's name is that run (wire.RunNamed). From then on every
message says so, before anything else sees it: `apply` is all there is to it.
"""

from collections.abc import Mapping
from typing import TypeAlias, TypeVar

from msgspec import structs

from oomwatch import wire

NAMES_MAX = 65_536  # the oldest are forgotten: a job of weeks ago is over

_Message: TypeAlias = wire.Sample | wire.Event | wire.Bye
_OfRun = TypeVar("_OfRun", wire.GpuProcess, wire.HostProcess, wire.TorchSample, wire.EngineSample)


class RunNames:
    """Names that stand for a run -> what it is called."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def learn(self, provisional: str, name: str) -> None:
        """`provisional` stands for `name`, whatever it stood for before. What is called so itself is no stand-in."""
        name = self.of(name)
        if provisional != name:
            self._names[provisional] = name
            if len(self._names) > NAMES_MAX:
                del self._names[next(iter(self._names))]

    def of(self, run: str) -> str:
        """The name of a run, which may be its own."""
        return self._names.get(run, run)

    def __contains__(self, run: str) -> bool:
        """Whether this is a name that only stands for a run."""
        return run in self._names

    def apply(self, message: _Message) -> _Message:
        """The same message, with every run by its name."""
        if not self._names:
            return message
        if isinstance(message, wire.Event):
            run = message.run and self.of(message.run)
            return message if run == message.run else structs.replace(message, run=run)
        return renamed(message, self._names) if isinstance(message, wire.Sample) else message


def renamed(sample: wire.Sample, names: Mapping[str, str | None]) -> wire.Sample:
    """The same sample, with these runs by other names, or by none."""
    gpus = tuple(
        structs.replace(gpu, processes=_all(gpu.processes, names)) if gpu.processes else gpu for gpu in sample.gpus
    )
    host = sample.host
    if host is not None and host.processes:
        host = structs.replace(host, processes=_all(host.processes, names))
    return structs.replace(
        sample, gpus=gpus, host=host, torch=_all(sample.torch, names), engines=_all(sample.engines, names)
    )


def _all(things: tuple[_OfRun, ...], names: Mapping[str, str | None]) -> tuple[_OfRun, ...]:
    return tuple(
        structs.replace(thing, run=names[thing.run]) if thing.run is not None and thing.run in names else thing
        for thing in things
    )
