"""Which processes are on which GPU, as of the agent's latest samples."""

from collections.abc import Iterator

from msgspec import Struct

from oomwatch import wire

PROCESSES_MAX = 8  # of one alert: a card that more share is no trainer's


class _Process(Struct, frozen=True):
    pid: int
    gpu: str | None
    run: str | None
    used_bytes: int


class Watched:
    """Fed by the agent's loop with every sample, asked by the threads of the acts."""

    def __init__(self) -> None:
        self._by_gpu: dict[str, tuple[_Process, ...]] = {}  # the driver's table is read now and then: the latest
        self._of_host: tuple[_Process, ...] = ()
        self._probes: tuple[_Process, ...] = ()

    def see(self, sample: wire.Sample) -> None:
        for gpu in sample.gpus:
            if gpu.processes is not None:
                found = (_Process(one.pid, gpu.gpu, one.run, one.used_bytes or 0) for one in gpu.processes)
                self._by_gpu = {**self._by_gpu, gpu.gpu: tuple(found)}
        if sample.host is not None and sample.host.processes is not None:
            found = (_Process(one.pid, None, one.run, one.rss_bytes) for one in sample.host.processes)
            self._of_host = tuple(found)
        self._probes = tuple(_Process(one.pid, one.gpu, one.run, one.reserved_bytes or 0) for one in sample.torch)

    def processes(self, gpu: str | None, run: str | None) -> list[int]:
        """Those on a GPU; where there is none, those of the run, or of every run. The largest first, a few at most."""
        found = [one for one in self._all() if self._is_meant(one, gpu, run)]
        found.sort(key=lambda one: -one.used_bytes)
        return list(dict.fromkeys(one.pid for one in found))[:PROCESSES_MAX]

    def _all(self) -> Iterator[_Process]:
        for processes in self._by_gpu.values():
            yield from processes
        yield from self._probes
        yield from self._of_host

    @staticmethod
    def _is_meant(one: _Process, gpu: str | None, run: str | None) -> bool:
        if gpu is not None:
            return one.gpu == gpu
        return one.run == run if run is not None else one.run is not None
