"""How a load program is started."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from bench._options import parser_of


def run(about: str | None, stand_for: Callable[[int, int], Coroutine[Any, Any, None]], *, of: str) -> None:
    """`stand_for` so many of these ("nodes", "count") at a port, as the command line says."""
    parser = parser_of(about)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument(f"--{of}", type=int, required=True, dest="number")
    options = parser.parse_args()
    asyncio.run(stand_for(options.number, options.port))
