"""The stand-in itself: a program of its own sees the scripted GPUs, and every change of the script."""

import os
import subprocess
import sys
from pathlib import Path

from tests.nvml.standin import GIB, ScriptedGpus

PROGRAM = """
import pynvml
pynvml.nvmlInit()
handle = pynvml.nvmlDeviceGetHandleByIndex(1)
for _ in range(3):
    print(pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2).used, flush=True)
    input()
"""


def test_another_program_sees_the_gpus_change(nvml_library: Path, tmp_path: Path) -> None:
    gpus = ScriptedGpus(tmp_path, nvml_library, count=2)
    environment = {**os.environ, **gpus.environment}
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        for used_gib in (0, 17, 79):
            if used_gib:
                gpus.set(1, used_bytes=used_gib * GIB)
                program.stdin.write("\n")
                program.stdin.flush()
            assert int(program.stdout.readline()) == used_gib * GIB
        program.communicate("\n")
