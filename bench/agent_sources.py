"""What the agent's hardware sources cost: CPU milliseconds a second at 1 Hz, with 8 GPUs of the scripted NVML library.

    python -m bench.agent_sources [READINGS]

One reading in ten is a slow one, as in the agent; a second row has one of the eight GPUs hung. The stand-in answers at
once: on a real machine the driver's own time comes on top.
"""

import os
import subprocess
import tempfile
import time
from pathlib import Path

from bench._options import parser_of
from tests.nvml import standin

from oomwatch_agent.cards.nvml import NvmlSource
from oomwatch_agent.host import HostSource
from oomwatch_agent.source import Source

SLOW_EVERY = 10
GPUS = 8


def cost(source: Source, readings: int) -> str:
    """CPU of the whole process, all threads, per reading: user and system."""
    source.read(slow=True)
    wall, cpu = time.perf_counter(), time.process_time()
    for number in range(readings):
        source.read(slow=number % SLOW_EVERY == 0)
    cpu_ms = (time.process_time() - cpu) * 1000 / readings
    wall_ms = (time.perf_counter() - wall) * 1000 / readings
    return f"{cpu_ms:6.3f} ms CPU, {wall_ms:6.3f} ms elapsed a reading"


def scripted(folder: Path) -> standin.ScriptedGpus:
    library = standin.build(folder)
    standin.load(library)
    gpus = standin.ScriptedGpus(folder, library, count=GPUS)
    os.environ["OOMWATCH_NVML_SCRIPT"] = str(gpus.path)
    for index in range(GPUS):
        gpus.set(index, used_bytes=index * standin.GIB, processes=((os.getpid(), standin.GIB), (1, standin.GIB)))
    return gpus


def measure(folder: Path, readings: int) -> None:
    gpus = scripted(folder)
    source = NvmlSource(limit_seconds=0.5)
    source.open()
    print(f"nvml, {GPUS} GPUs               {cost(source, readings)}")
    gpus.set(3, hang=True)
    source.read(slow=False)
    print(f"nvml, one of {GPUS} GPUs hung   {cost(source, readings)}")
    gpus.release()
    host = HostSource()
    host.open()
    count = subprocess.run(["ls", "/proc"], capture_output=True, text=True, check=True).stdout.split()
    print(f"host, {sum(name.isdigit() for name in count)} processes        {cost(host, readings)}")


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("readings", type=int, nargs="?", default=500)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        measure(Path(name), options.readings)


if __name__ == "__main__":
    main()
