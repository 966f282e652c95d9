"""The size of a memory, as a flag says it."""

from oomwatch.options import SettingError
from oomwatch.units import parse_quantity
from oomwatch.wire import COUNT_MAX

_SMALLEST_BYTES = 2**20  # of a card or a host: less is a size whose unit was forgotten


def size_of(text: str | None, flag: str) -> int | None:
    """Bytes of a flag such as 80GiB. Raises SettingError."""
    if text is None:
        return None
    try:
        size = int(parse_quantity(text))
    except ValueError as error:
        raise SettingError(f"flag {flag}: {error}") from error
    if size < _SMALLEST_BYTES:
        raise SettingError(f'flag {flag}: "{text}" is too small; write the unit, for example 80GiB')
    if size > COUNT_MAX:
        raise SettingError(f'flag {flag}: "{text}" is more than any machine has')
    return size
