"""The options of a benchmark. What it measures and takes is said once, in its docstring: `--help` shows that."""

import argparse
import re


def parser_of(about: str | None) -> argparse.ArgumentParser:
    """Of the program with this docstring, which names how it is called: `python -m bench.NAME`."""
    called = re.search(r"python -m bench\.\w+", about or "")
    return argparse.ArgumentParser(
        prog=called[0] if called else None, description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
