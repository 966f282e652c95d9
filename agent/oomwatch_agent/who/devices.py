"""Which accelerators a process was given, by the variables of each maker. PURE."""

from collections.abc import Mapping
from typing import NamedTuple


class Given(NamedTuple):
    """One entry of a variable: an index, a UUID or the beginning of one. `prefix` is that of the maker's labels."""

    entry: str
    prefix: str = ""


def given(variables: Mapping[str, str]) -> tuple[Given, ...]:
    """What the process counts from 0, in its own order; () where no variable tells.

    An AMD process counts within HIP_VISIBLE_DEVICES (or CUDA's, which HIP reads too), and that counts within
    ROCR_VISIBLE_DEVICES.
    """
    if npus := _entries(variables, "ASCEND_RT_VISIBLE_DEVICES"):
        return tuple(Given(entry, "npu-") for entry in npus)
    cuda = _entries(variables, "CUDA_VISIBLE_DEVICES")
    outer, inner = _entries(variables, "ROCR_VISIBLE_DEVICES"), _entries(variables, "HIP_VISIBLE_DEVICES")
    if outer:
        within = [int(entry) for entry in inner or cuda if entry.isdigit()]
        chosen = [outer[index] for index in within if index < len(outer)] if within else outer
        return tuple(Given(entry, "amd-") for entry in chosen)
    return tuple(Given(entry, "amd-") for entry in inner) or tuple(Given(entry) for entry in cuda)


def _entries(variables: Mapping[str, str], name: str) -> list[str]:
    return [entry.strip() for entry in variables.get(name, "").split(",") if entry.strip()]
