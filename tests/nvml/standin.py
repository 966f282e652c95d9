"""GPUs by script: a stand-in for libnvidia-ml.so.1 and the hand that moves what it shows.

`build(folder)` compiles libnvidia-ml.c. Whatever loads NVML by name then finds the stand-in: a program started with
`ScriptedGpus.environment`, or this very process after `load(library)`. `ScriptedGpus` writes the script that the
library reads again at each call, so a test can fill, hang or lose a GPU while a real agent watches.

    gpus = ScriptedGpus(tmp_path / "gpus", library, count=8)
    agent = subprocess.Popen([...], env={**os.environ, **gpus.environment})
    gpus.set(3, used_bytes=79 * GIB)
    gpus.set(5, hang=True)
"""

import ctypes
import subprocess
from pathlib import Path

import msgspec

GIB = 1024**3
SOURCE = Path(__file__).with_name("libnvidia-ml.c")
SONAME = "libnvidia-ml.so.1"
NO_GCC = "apt-get install gcc"

# Codes of nvml.h that scripts use.
NOT_SUPPORTED = 3
NO_PERMISSION = 4
DRIVER_NOT_LOADED = 9
FUNCTION_NOT_FOUND = 13
LIB_RM_VERSION_MISMATCH = 18
UNKNOWN = 999


def build(folder: Path, compiler: str = "gcc", *, release: str = "") -> Path:
    """Compile the library into a folder; its path. Raises CalledProcessError where the compiler refuses.

    `release`: of the driver that it belongs to; it works with that kernel module alone (`load_module`).
    """
    library = folder / SONAME
    flags = ["-Wall", "-Wextra", "-Werror", "-O2", "-shared", "-fPIC", "-fvisibility=hidden", f"-Wl,-soname,{SONAME}"]
    flags.append(f'-DRELEASE="{release}"')
    fresh = library.with_suffix(".new")  # as an installer does it: who has the old one loaded keeps it
    subprocess.run([compiler, *flags, "-o", str(fresh), str(SOURCE), "-lpthread"], check=True)
    fresh.replace(library)
    return library


def load(library: Path) -> None:
    """Load the stand-in into this process: a later load of libnvidia-ml.so.1 by name gets it (same soname)."""
    ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    assert ctypes.CDLL(SONAME)._handle == ctypes.CDLL(str(library))._handle


class ScriptedGpu(msgspec.Struct, frozen=True, kw_only=True):
    """What the driver says of one GPU, or of one MIG instance. `refuse`: an error code by nvml.h's function name."""

    uuid: str
    name: str = "NVIDIA H100 80GB HBM3"
    pci_bus_id: str = ""
    total_bytes: int = 81559 * 1024**2
    reserved_bytes: int = 640 * 1024**2
    used_bytes: int = 0
    utilization_percent: int = 0
    power_milliwatts: int = 70_000
    power_limit_milliwatts: int = 700_000
    temperature_celsius: int = 40
    ecc_uncorrected: int = 0
    processes: tuple[tuple[int, int], ...] = ()  # process id, bytes
    lost: bool = False
    hang: bool = False  # every call about it blocks until this is false again
    refuse: dict[str, int] = {}
    xids: tuple[tuple[int, int], ...] = ()  # serial number, Xid
    migs: tuple["ScriptedGpu", ...] = ()


class ScriptedGpus:
    """The GPUs of one pretended machine. Every change is on disk, whole, when the method returns."""

    def __init__(self, folder: Path, library: Path, *, count: int = 1) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "script"
        self._library = library
        self._gpus = [self._fresh(index) for index in range(count)]
        self._refuse: dict[str, int] = {}
        self._hang = self._notes_calls = False
        self._module = ""
        self._burn_us = 0
        self._xids_so_far = 0
        self._write()

    @property
    def environment(self) -> dict[str, str]:
        """What a program must be started with to see these GPUs."""
        return {"OOMWATCH_NVML_SCRIPT": str(self.path), "LD_LIBRARY_PATH": str(self._library.parent)}

    def __len__(self) -> int:
        return len(self._gpus)

    def __getitem__(self, index: int) -> ScriptedGpu:
        return self._gpus[index]

    def set(self, index: int, **changes: object) -> None:
        """Change fields of ScriptedGpu: `set(0, used_bytes=GIB)`."""
        self._gpus[index] = msgspec.structs.replace(self._gpus[index], **changes)
        self._write()

    def set_migs(self, index: int, *used_bytes: int, total_bytes: int = 20 * GIB) -> None:
        """Cut a GPU into instances that hold these bytes; with none, make it whole again."""
        migs = tuple(
            ScriptedGpu(
                uuid=f"MIG-{index}{number}",
                name="NVIDIA A100-SXM4-80GB MIG 2g.20gb",
                total_bytes=total_bytes,
                reserved_bytes=0,
                used_bytes=used,
            )
            for number, used in enumerate(used_bytes)
        )
        self.set(index, migs=migs)

    def resize(self, count: int) -> None:
        """As many GPUs as this: the last ones vanish, or new ones appear."""
        self._gpus = self._gpus[:count] + [self._fresh(index) for index in range(len(self._gpus), count)]
        self._write()

    def raise_xid(self, index: int, xid: int) -> None:
        """An Xid that programs registered for will be told once."""
        self._xids_so_far += 1
        self.set(index, xids=(*self._gpus[index].xids, (self._xids_so_far, xid)))

    def refuse(self, function: str, code: int | None) -> None:
        """An error code for a function of the library as a whole (nvmlInitWithFlags); None takes it back."""
        self._refuse.pop(function, None)
        if code is not None:
            self._refuse[function] = code
        self._write()

    def load_module(self, release: str) -> None:
        """The kernel module of this release is loaded from now on: libraries of others are refused."""
        self._module = release
        self._write()

    def burn(self, microseconds: int) -> None:
        """From now on every call takes so much CPU."""
        self._burn_us = microseconds
        self._write()

    def hang_library(self, hang: bool) -> None:
        """Block the calls that concern no device: nvmlInit, the count, the events."""
        self._hang = hang
        self._write()

    def release(self) -> None:
        """Let every blocked call go."""
        self._hang = False
        self._gpus = [msgspec.structs.replace(gpu, hang=False) for gpu in self._gpus]
        self._write()

    def count_calls(self) -> None:
        """From now on every call is noted."""
        Path(f"{self.path}.calls").write_text("")
        self._notes_calls = True
        self._write()

    def calls(self) -> list[tuple[str, int]]:
        """Function and index of the GPU (-1: none) of every call since count_calls."""
        lines = Path(f"{self.path}.calls").read_text().splitlines()
        return [(function, int(gpu)) for function, gpu in (line.split() for line in lines)]

    @staticmethod
    def _fresh(index: int) -> ScriptedGpu:
        return ScriptedGpu(
            uuid=f"GPU-{index:08d}-aaaa-bbbb-cccc-dddddddddddd", pci_bus_id=f"00000000:{0x10 + index:02X}:00.0"
        )

    def _write(self) -> None:
        lines = ["name 570.86.15", f"hang {int(self._hang)}", f"note_calls {int(self._notes_calls)}"]
        lines += [f"module {self._module}"] if self._module else []
        lines += [f"burn_us {self._burn_us}", *_refusals(self._refuse)]
        for gpu in self._gpus:
            lines += ["gpu", *_lines(gpu)]
            for mig in gpu.migs:
                lines += ["mig", *_lines(mig)]
        fresh = self.path.with_suffix(".new")
        fresh.write_text("\n".join(lines) + "\n")
        fresh.replace(self.path)


def _lines(gpu: ScriptedGpu) -> list[str]:
    return [
        f"uuid {gpu.uuid}",
        f"name {gpu.name}",
        f"pci {gpu.pci_bus_id}",
        f"total {gpu.total_bytes}",
        f"reserved {gpu.reserved_bytes}",
        f"used {gpu.used_bytes}",
        f"utilization {gpu.utilization_percent}",
        f"power {gpu.power_milliwatts}",
        f"power_limit {gpu.power_limit_milliwatts}",
        f"temperature {gpu.temperature_celsius}",
        f"ecc {gpu.ecc_uncorrected}",
        f"lost {int(gpu.lost)}",
        f"hang {int(gpu.hang)}",
        *(f"process {pid} {used}" for pid, used in gpu.processes),
        *(f"xid {serial} {xid}" for serial, xid in gpu.xids),
        *_refusals(gpu.refuse),
    ]


def _refusals(refuse: dict[str, int]) -> list[str]:
    return [f"refuse {function} {code}" for function, code in refuse.items()]
