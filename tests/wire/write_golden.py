"""Write the golden messages that do not exist yet: `python -m tests.wire.write_golden`."""

from pathlib import Path

import msgspec
from tests.wire.golden_messages import MESSAGES

from oomwatch import wire

FOLDER = Path(__file__).parent / "v1"


def main() -> None:
    for name, message in MESSAGES.items():
        path = FOLDER / f"{name}.json"
        if not path.exists():
            path.write_bytes(msgspec.json.format(wire.encode(message), indent=2) + b"\n")
            print(path.name)


if __name__ == "__main__":
    main()
