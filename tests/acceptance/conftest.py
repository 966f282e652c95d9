"""What the acceptance stories share: scripted GPUs, a receiver of webhooks, and rules with shorter times."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.acceptance.programs import ROOT
from tests.nvml import standin
from tests.nvml.conftest import nvml_library
from tests.server.receiver import Receiver, receiving

__all__ = ["gpus", "nvml_library", "receiver", "rules"]

# The shipped rules, on a clock that a test can wait for. Nothing else about them is changed.
QUICK = """
overrides:
  - {alert: gpu_memory_high, match: {}, set: {for: 2s, keep_firing_for: 2s}}
  - {alert: torch_reserved_high, match: {}, set: {when: {window: 20s}, keep_firing_for: 1s}}
  - alert: reshard_storm
    match: {}
    set: {when: [{kind: rate, of: reshard_cycles, above_per_minute: 6, window: 20s}], keep_firing_for: 1s}
  - {alert: out_of_memory, match: {}, set: {when: {within: 20s}}}
notify:
  group_wait: 100ms
  group_interval: 1s
  channels:
    - {kind: webhook, name: ops, url: "RECEIVER"}
"""


@pytest.fixture
def gpus(nvml_library: Path, tmp_path: Path) -> Iterator[standin.ScriptedGpus]:
    """Four H100 that programs started with `gpus.environment` see through the real nvidia-ml-py."""
    scripted = standin.ScriptedGpus(tmp_path / "gpus", nvml_library, count=4)
    yield scripted
    scripted.release()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as listening:
        yield listening


@pytest.fixture
def rules(tmp_path: Path, receiver: Receiver) -> Path:
    path = tmp_path / "alerts.yaml"
    shipped = (ROOT / "alerts.yaml").read_text(encoding="utf-8")
    path.write_text(shipped + QUICK.replace("RECEIVER", receiver.url), encoding="utf-8")
    return path
