"""Writes the pages that are made from the code."""

import sys

from scripts.reference.pages import write
from scripts.reference.words import TABLE

if __name__ == "__main__":
    if missing := write():
        sys.exit("\n".join([f"without a translation in {TABLE.name}:", *missing]))
