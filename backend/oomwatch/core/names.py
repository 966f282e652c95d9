"""What runs are called, on nodes that know only the job that they work for.

The node with a run's driver tells that what goes by the job's name is that run (wire.RunNamed). From then on every
message says so, before anything else sees it: `apply` is all there is to it.
"""

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
        return self._in_sample(message) if isinstance(message, wire.Sample) else message

    def _in_sample(self, sample: wire.Sample) -> wire.Sample:
        gpus = tuple(
            structs.replace(gpu, processes=self._all(gpu.processes)) if gpu.processes else gpu for gpu in sample.gpus
        )
        host = sample.host
        if host is not None and host.processes:
            host = structs.replace(host, processes=self._all(host.processes))
        return structs.replace(
            sample, gpus=gpus, host=host, torch=self._all(sample.torch), engines=self._all(sample.engines)
        )

    def _all(self, things: tuple[_OfRun, ...]) -> tuple[_OfRun, ...]:
        return tuple(
            structs.replace(thing, run=self._names[thing.run]) if thing.run in self._names else thing
            for thing in things
        )
