"""A real Slurm of one node on loopback: controller and node, without munge."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from tests.missing import do_without
from tests.ports import free_ports

START_SECONDS = 120.0
Self = TypeVar("Self", bound="SlurmCluster")
_CONF = """
ClusterName=trial
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
CredType=cred/none
SlurmctldPort={port}
SlurmdPort={node_port}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
MpiDefault=none
SwitchType=switch/none
KillWait=20
Prolog={prolog}
Epilog={epilog}
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 RealMemory=1000 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class SlurmCluster:
    """Both daemons run in the foreground, as children of the test."""

    def __init__(self, folder: Path, prolog: Path, epilog: Path) -> None:
        self.folder, self.host = folder, socket.gethostname()
        for name in ("slurmctld", "slurmd", "sbatch", "srun"):
            if shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") is None:
                do_without(name, "scripts/system-packages, or apt-get install slurmctld slurmd slurm-client")
        if os.geteuid() != 0:
            do_without("root", "run the tests as root: slurmd serves nobody else")
        for name in ("state", "spool"):
            (folder / name).mkdir()
        ports = free_ports(2)
        conf = _CONF.format(
            host=self.host, user="root", port=ports[0], node_port=ports[1], folder=folder, prolog=prolog, epilog=epilog
        )
        (folder / "slurm.conf").write_text(conf, encoding="utf-8")
        self.environ = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
        self._daemons: list[subprocess.Popen[bytes]] = []

    def __enter__(self: Self) -> Self:  # noqa: PYI019 - Python 3.10 has no Self
        self._start("slurmctld", "-D", "-i")
        self._start("slurmd", "-D", "-N", self.host)
        deadline = time.monotonic() + START_SECONDS
        while self.ask("sinfo", "--noheader", "--format=%t") != "idle":
            assert time.monotonic() < deadline, self.logs()
            time.sleep(0.2)  # between two looks, never instead of one
        return self

    def __exit__(self, *_: object) -> None:
        for daemon in reversed(self._daemons):
            daemon.terminate()
        for daemon in self._daemons:
            _ended(daemon)

    def ask(self, *command: str) -> str:
        """What a command of Slurm's prints."""
        told = subprocess.run(command, env=self.environ, capture_output=True, text=True, check=False, cwd=self.folder)
        return told.stdout.strip()

    def submit(self, script: str, *flags: str, environ: dict[str, str]) -> str:
        """A job's number."""
        path = self.folder / "job.sh"
        path.write_text(f"#!/bin/bash\n{script}", encoding="utf-8")
        command = ["sbatch", "--parsable", *flags, str(path)]
        given = {**self.environ, **environ}
        told = subprocess.run(command, env=given, capture_output=True, text=True, check=False, cwd=self.folder)
        assert told.returncode == 0, told.stderr + self.logs()
        return told.stdout.strip()

    def logs(self) -> str:
        """For whoever wonders why nothing happens."""
        found: Iterator[Any] = (path for path in sorted(self.folder.glob("*.log")))
        return "\n".join(f"== {path.name}\n{path.read_text(errors='replace')[-2000:]}" for path in found)

    def _start(self, name: str, *flags: str) -> None:
        program = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")
        with (self.folder / f"{name}.log").open("ab") as output:
            self._daemons.append(
                subprocess.Popen(
                    [str(program), *flags], env=self.environ, stdout=output, stderr=output, cwd=self.folder
                )
            )


def _ended(daemon: "subprocess.Popen[bytes]") -> None:
    try:
        daemon.wait(20)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait()
