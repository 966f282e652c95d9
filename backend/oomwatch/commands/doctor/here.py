"""The cards of this machine, as nvidia-smi tells them: for --gpu here."""

import shutil
import subprocess
from typing import NamedTuple

from oomwatch.options import SettingError
from oomwatch.oserror import in_words
from oomwatch.plan.cards import Card, card_named, card_of_total

_COMMAND = ("--query-gpu=name,memory.total", "--format=csv,noheader,nounits")
_WITHIN_SECONDS = 20


class Here(NamedTuple):
    card: Card
    gpus: int


def cards_here() -> Here:
    """This machine's card and how many there are. Raises SettingError where there is none, or of several kinds."""
    program = shutil.which("nvidia-smi")
    if program is None:
        raise SettingError("flag --gpu here: nvidia-smi is not found on this machine; name the card, for example H100")
    try:
        told = subprocess.run(  # noqa: S603 - our own words
            [program, *_COMMAND], capture_output=True, text=True, check=True, timeout=_WITHIN_SECONDS
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise SettingError(
            f"flag --gpu here: nvidia-smi failed ({in_words(error)}); name the card, for example H100"
        ) from error
    return parse(told.stdout)


def parse(text: str) -> Here:
    """From "NVIDIA H200, 143771" a line for each card. Raises SettingError."""
    rows = [line.rpartition(",") for line in text.splitlines() if line.strip()]
    kinds = {(name.strip(), size.strip()) for name, _, size in rows}
    if len(kinds) != 1:
        names = ", ".join(sorted(name for name, _ in kinds)) or "none"
        raise SettingError(f"flag --gpu here: one kind of card is needed, found are {names}; name one")
    ((name, size),) = kinds
    known = card_named(name)
    if known is not None:
        return Here(known, len(rows))
    if not size.isdecimal():
        raise SettingError(f'flag --gpu here: nvidia-smi tells no memory of "{name}" ({size}); give it, such as 79GiB')
    return Here(card_of_total(name, int(size) * 2**20, "NVML"), len(rows))
