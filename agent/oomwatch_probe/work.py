"""What is asked of this process, and how far it is: what every kind of it has in common."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import ModuleType
from typing import Any

NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_DETAIL = 200


class Work:
    """One asking. `answer` is told to the agent as it is: state "working", "done" or "failed"."""

    def __init__(self, act: str, ask: dict[str, Any]) -> None:
        self.ask = ask
        self.answer: dict[str, Any] = {"id": ask.get("id"), "act": act, "state": "working", "files": []}

    def begin(self, cuda: ModuleType) -> None:
        raise NotImplementedError

    def go_on(self) -> None:
        """Once a second, while it is working."""

    def drop(self) -> None:
        """It is not asked for any more: leave all as it was."""

    def path(self, name: str) -> str:
        """Of a file in the folder that the agent made for it."""
        return os.path.join(self.ask["folder"], name)

    def done(self, detail: str) -> None:
        self.answer.update(state="done", detail=detail[:_MAX_DETAIL])

    def safely(self, do: Callable[[], None]) -> None:
        """Whatever goes wrong, the agent is told and the program is not."""
        try:
            do()
        except Exception as error:
            self.answer.update(state="failed", detail=f"{type(error).__name__}: {error}"[:_MAX_DETAIL])
