"""The flags of every command that asks a running server. Light to load."""

import argparse
from pathlib import Path


def add_client_flags(parser: argparse.ArgumentParser, *, default: str | None = None) -> None:
    """Which server to ask, and how. `default`: argparse.SUPPRESS below a command that has these flags itself."""
    parser.add_argument(
        "--server", metavar="URL", default=default, help="a running server, http://HOST:8642 (OOMWATCH_SERVER)"
    )
    parser.add_argument(
        "--reader-token", metavar="TOKEN", default=default, help="its reader token (OOMWATCH_READER_TOKEN)"
    )
    parser.add_argument(
        "--reader-token-file", type=Path, metavar="FILE", default=default,
        help="file that holds it (OOMWATCH_READER_TOKEN_FILE)",
    )  # fmt: skip
