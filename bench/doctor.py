"""The CPU that a report of the doctor takes: in a server, and as a command with Python's start.

    python -m bench.doctor

The configurations are a script of 15 settings, as it is, far too large, and refused; and a template of ours as YAML.
"""

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench._options import parser_of
from tests.doctor.cases import ARTICLE, report

OVERRIDES = (
    (),
    ("actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=30", "data.max_response_length=16384"),
    ("trainer.n_gpus_per_node=8",),
)
TIMES = 7


def report_seconds(overrides: tuple[str, ...]) -> float:
    began = time.process_time()
    report(*overrides)
    return time.process_time() - began


def command_seconds(*words: str) -> float:
    """Of a Python of its own. What it exits with is nobody's concern: a refused configuration is no failure here."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "oomwatch", *words], stdout=subprocess.DEVNULL, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser_of(__doc__).parse_args()
    for overrides in OVERRIDES:
        report(*overrides)
        seconds = statistics.median(report_seconds(overrides) for _ in range(TIMES))
        print(f"a report, {' '.join(overrides) or 'as it is'}: {seconds * 1000:.0f} ms")
    with tempfile.TemporaryDirectory() as folder:
        script, yaml = Path(folder, "train.sh"), Path(folder, "train.yaml")
        script.write_text(ARTICLE)
        template = subprocess.run(
            [sys.executable, "-m", "oomwatch", "template", "T2", "--format", "yaml"], capture_output=True, check=True
        )
        yaml.write_bytes(template.stdout)
        for words in (("doctor", str(script), "--gpu", "H100"), ("doctor", str(yaml), "--gpu", "H100"), ("template",)):
            command_seconds(*words)
            seconds = statistics.median(command_seconds(*words) for _ in range(TIMES))
            print(f"oomwatch {' '.join(Path(word).name for word in words)}: {seconds:.2f} s")


if __name__ == "__main__":
    main()
