"""A training inside a real Ray cluster: real workers, real logging, verl's lines; only the figures are made up.

    python ray_training.py FOLDER STEPS

It writes the process ids of its ranks into FOLDER/ranks once they run, waits for FOLDER/go, trains, waits for
FOLDER/finish, and ends as a run does that is out of memory. torch is the stand-in of tests/probe, so that the probe
finds counters to read.
"""

import logging
import os
import sys
import time
from pathlib import Path
from typing import Any

import ray

GIB = 2**30
CARD_GIB = 79.15
CONFIG = {
    "actor_rollout_ref": {"rollout": {"n": 12, "gpu_memory_utilization": 0.6, "name": "vllm"}},
    "data": {"train_batch_size": 60, "max_response_length": 4096},
    "trainer": {"experiment_name": "qwen7b_grpo", "nnodes": 1, "n_gpus_per_node": 2, "project_name": "trial"},
}
HEADS = (
    ("Before resume weights", 6.0, 10.0),
    ("After resume weights", 6.0, 26.0),
    ("After update_weights", 24.0, 43.0),
    ("After resume kv_cache", 4.0, 59.0),
    ("Before load_fsdp_model_to_gpu", 5.0, 9.0),
    ("After load_fsdp_model_to_gpu", 42.0, 45.0),
)


@ray.remote(num_cpus=0.1)
class ActorRolloutRefWorker:
    """One rank. Only rank 0 prints memory lines, as in verl; every rank has the probe inside."""

    def __init__(self, rank: int) -> None:
        os.environ.update(RANK=str(rank), WORLD_SIZE="2", LOCAL_RANK="0")
        import torch.cuda  # noqa: PLC0415 - after the environment, as in a worker

        self._rank = rank
        self._torch: Any = torch.cuda
        logging.basicConfig(level=logging.DEBUG, force=True)
        self._logger = logging.getLogger("verl.workers.engine_workers")

    def pid(self) -> int:
        self._torch.devices[:] = [self._torch.fill(reserved=GIB)]
        self._torch.init()
        return os.getpid()

    def train_step(self, step: int) -> float:
        """The peak of torch's reserved memory, in GiB."""
        for head, reserved_gib, used_gib in HEADS:
            reserved_bytes = int((reserved_gib + self._rank) * GIB)
            self._torch.devices[0] = self._torch.fill(
                reserved=reserved_bytes, allocated=reserved_bytes // 2, retries=step
            )
            if self._rank == 0:
                self._logger.debug(
                    "%s, memory allocated (GB): %.2f, memory reserved (GB): %.2f, "
                    "device memory used/total (GB): %.2f/%s",
                    *(head, reserved_gib / 2, reserved_gib, used_gib, CARD_GIB),
                )
            time.sleep(0.05)
        return 44.0 + step

    def run_out(self) -> None:
        raise RuntimeError(
            "CUDA out of memory. Tried to allocate 2.32 GiB. GPU 0 has a total capacity of 79.15 GiB of which 412.75 "
            "MiB is free. Including non-PyTorch memory, this process has 78.74 GiB memory in use. Of the allocated "
            "memory 71.02 GiB is allocated by PyTorch, and 5.11 GiB is reserved by PyTorch but unallocated."
        )


@ray.remote(num_cpus=0.1)
class TaskRunner:
    def run(self, folder: str, steps: int) -> None:
        from pprint import pprint  # noqa: PLC0415 - as verl does

        pprint(CONFIG)
        ranks = [ActorRolloutRefWorker.remote(rank) for rank in range(2)]  # type: ignore[attr-defined]
        pids = ray.get([rank.pid.remote() for rank in ranks])
        Path(folder, "ranks").write_text(" ".join(map(str, pids)), encoding="utf-8")
        wait_for(Path(folder, "go"))
        for step in range(1, steps + 1):
            peak_gib = ray.get([rank.train_step.remote(step) for rank in ranks])[0]
            print(
                f"step:{step} - actor/lr:1e-06 - perf/max_memory_reserved_gb:{peak_gib} - response_length/mean:615.7 - "
                f"timing_s/gen:{30 + step / 10} - timing_s/old_log_prob:8.4 - timing_s/update_actor:44.1 - "
                f"timing_s/update_weights:3.2 - timing_s/step:{94 + step / 10} - training/global_step:{step}"
            )
        wait_for(Path(folder, "finish"))
        ray.get(ranks[1].run_out.remote())


def wait_for(path: Path) -> None:
    """Until whoever watches this training says that it has seen enough."""
    while not path.exists():
        time.sleep(0.05)


def main() -> int:
    folder, steps = sys.argv[1], int(sys.argv[2])
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=True, _temp_dir=os.environ["RAY_TMPDIR"])
    try:
        ray.get(TaskRunner.remote().run.remote(folder, steps))  # type: ignore[attr-defined]
    except Exception as error:
        print(error)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
