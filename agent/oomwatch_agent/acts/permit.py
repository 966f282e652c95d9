"""What an agent lets itself be asked: nothing, unless the one who started it has said so."""

from pathlib import Path

from msgspec import Struct

from oomwatch import wire

AUTO_FOLDER = "/tmp/oomwatch-acts-{uid}"  # noqa: S108 - made for this user alone, and checked (cabinet.py)


class Permit(Struct, frozen=True, kw_only=True):
    """The settings of this agent. The server can name an act of this list, and nothing more."""

    acts: tuple[str, ...] = ()  # of wire.ACTS
    folder: Path = Path(AUTO_FOLDER)
    hook: Path | None = None
    hook_seconds: float = 60.0

    def refusal(self, act: str) -> str | None:
        """Why an act is not done; None where it may be."""
        if act not in wire.ACTS:
            return "this agent does not know it; install the server's version on the node"
        if act not in self.acts:
            return f"not allowed on this node; start its agent with --allow-acts {act}"
        return None
