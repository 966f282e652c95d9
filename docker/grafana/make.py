"""Write Grafana's dashboards from boards/: what is seen is told there, once, and Grafana's JSON is worked out from it.

python docker/grafana/make.py           writes docker/grafana/dashboards/*.json
python docker/grafana/make.py --check   says which of them are not what this would write, and ends with 1
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from boards import alerting, fleet, gpu, run
from boards.board import Board, as_json

BOARDS: tuple[Board, ...] = (fleet.BOARD, run.BOARD, gpu.BOARD, alerting.BOARD)
FOLDER = Path(__file__).resolve().parent / "dashboards"


def texts() -> dict[str, str]:
    """Every file's text by its name."""
    return {f"{board.uid}.json": json.dumps(as_json(board), indent=2) + "\n" for board in BOARDS}


def differing(wanted: dict[str, str]) -> Iterator[str]:
    """Names of the files that are missing, too many or not as wanted."""
    for name in sorted({*wanted, *(path.name for path in FOLDER.glob("*.json"))}):
        path = FOLDER / name
        if not path.exists() or path.read_text(encoding="utf-8") != wanted.get(name):
            yield name


def write(wanted: dict[str, str]) -> None:
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.json"):
        path.unlink()
    for name, text in wanted.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; exit status 1 if anything would change")
    if not parser.parse_args().check:
        write(texts())
    elif stale := list(differing(texts())):
        sys.exit(f"not as boards/ would have it: {', '.join(stale)}; run python docker/grafana/make.py")


if __name__ == "__main__":
    main()
