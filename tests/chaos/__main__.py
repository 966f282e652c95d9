"""Blows on a real site for minutes: make chaos.

    python -m tests.chaos [--minutes 15] [--seed N] [--site alone|several|both]

Of both sites each gets half of the minutes. The exit status is 1 where anything was lost, doubled or invented; the seed
and the timeline are printed then.
"""

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.chaos.run import Opening, chaos
from tests.chaos.sites import alone, several
from tests.nvml import standin

SITES: dict[str, Opening] = {"alone": alone, "several": several}
SHOWN = 400  # last lines of a timeline


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--seed", type=int, default=None, help="of another run, to see it again as nearly as can be")
    parser.add_argument("--site", choices=[*SITES, "both"], default="both")
    options = parser.parse_args()
    chosen = SITES if options.site == "both" else {options.site: SITES[options.site]}
    seed = options.seed if options.seed is not None else int(time.time())
    return max([_tried(name, opening, seed, options.minutes * 60 / len(chosen)) for name, opening in chosen.items()])


def _tried(name: str, opening: Opening, seed: int, seconds: float) -> int:
    with tempfile.TemporaryDirectory(prefix="oomwatch-chaos-") as place:
        folder = Path(place)
        folder.chmod(0o755)
        library = _library(folder / "nvml")
        outcome, timeline = chaos(folder, opening, seed=seed, seconds=seconds, library=library)
        print(f"{name}, seed {seed}: {outcome.in_words()}", flush=True)
        if not outcome.wrong:
            return 0
        print("\n".join([*timeline.lines[-SHOWN:], "", *outcome.wrong]), file=sys.stderr)
        kept = Path(tempfile.mkdtemp(prefix="oomwatch-chaos-failed-"))
        shutil.copytree(folder, kept, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*-gpus", "nvml"))
        print(f"logs and database: {kept}", file=sys.stderr)
        return 1


def _library(folder: Path) -> Path | None:
    """What real agents read cards from; None where there is no compiler, and only stand-ins speak."""
    folder.mkdir()
    return standin.build(folder) if shutil.which("gcc") else None


if __name__ == "__main__":
    sys.exit(main())
