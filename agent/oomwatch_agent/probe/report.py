"""What a probe says in one datagram. PURE. It comes from another process, so nothing in it is believed to fit.

The probe's half is `oomwatch_probe.sender.message`. A newer probe may say more than this agent knows: that is ignored.
"""

from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta

from oomwatch import wire

MAX_DATAGRAM_BYTES = 16384
_MAX_DEVICES = 64

# Printable: these words reach logs, pages and chat messages.
_PRINTABLE = r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]*$"
_Text: TypeAlias = Annotated[str, Meta(max_length=200, pattern=_PRINTABLE)]
_Run: TypeAlias = Annotated[str, Meta(min_length=1, max_length=200, pattern=_PRINTABLE)]
_Pid: TypeAlias = Annotated[int, Meta(ge=1, le=2**31 - 1)]


class DeviceMemory(msgspec.Struct, frozen=True, kw_only=True):
    """torch's allocator on one device: totals and bytes as in wire.TorchSample."""

    index: Annotated[int, Meta(ge=0, le=1023)]  # the process' own numbering
    uuid: _Text | None = None  # as torch writes it: without "GPU-" or "MIG-"
    reserved_bytes: wire.Bytes | None = None
    allocated_bytes: wire.Bytes | None = None
    active_bytes: wire.Bytes | None = None
    inactive_split_bytes: wire.Bytes | None = None
    reserved_peak_bytes: wire.Bytes | None = None
    allocated_peak_bytes: wire.Bytes | None = None
    alloc_retries_total: wire.Count | None = None
    ooms_total: wire.Count | None = None


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """How far a process is with what it was asked to do (probe/asking.py)."""

    id: _Text
    act: _Text
    state: _Text  # "working", "done" or "failed"
    detail: _Text = ""
    files: Annotated[tuple[_Text, ...], Meta(max_length=8)] = ()  # in the folder that it was given


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Who sends it, and what it holds where."""

    v: Literal[1]
    pid: _Pid  # in the process' own namespace; the kernel's word is better where there is one
    started_at: wire.UnixSeconds
    door: _Text
    devices: Annotated[tuple[DeviceMemory, ...], Meta(max_length=_MAX_DEVICES)] = ()
    torch_version: _Text | None = None
    rank: wire.Count | None = None
    local_rank: wire.Count | None = None
    world_size: wire.Count | None = None
    role: _Text | None = None
    run: _Run | None = None
    visible_devices: _Text | None = None  # CUDA_VISIBLE_DEVICES as the process has it
    errors: wire.Count = 0  # what went wrong within the probe since it started
    acts: Annotated[tuple[Answer, ...], Meta(max_length=8)] = ()

    def gpu_names(self) -> tuple[str | None, ...]:
        """What each of the devices is called outside of the process, as far as the process can tell.

        A UUID, or an entry of CUDA_VISIBLE_DEVICES. An index without that variable says nothing: a container may have
        been given any of the node's GPUs as its first.
        """
        visible = [entry.strip() for entry in (self.visible_devices or "").split(",") if entry.strip()]
        return tuple(
            device.uuid or (visible[device.index] if device.index < len(visible) else None) for device in self.devices
        )


_decoder = msgspec.json.Decoder(Report)


def decode(content: bytes) -> Report:
    """Raises ValueError, with the reason, for anything that no probe says."""
    try:
        return _decoder.decode(content)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise ValueError(str(error)) from error
