"""Bytes as they come to whole lines."""

from oomwatch_agent.logs.scan import MAX_LINE_BYTES, Chunk


class LineSplitter:
    """Pieces of a byte stream to chunks of whole lines, without NUL bytes.

    A line ends at LF or, as progress bars do, at CR. One beyond MAX_LINE_BYTES is cut; the rest of it is dropped.
    """

    def __init__(self) -> None:
        self._partial = b""
        self._cutting = False
        self._number = 1

    def feed(self, block: bytes) -> Chunk:
        """The lines that `block` completes."""
        if b"\0" in block:
            block = block.replace(b"\0", b"")
        data = self._partial + block
        end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        self._partial = data[end:]
        number, whole = self._number, self._whole(data[:end])
        self._number += whole.count(b"\n")
        if len(self._partial) > MAX_LINE_BYTES:
            if not self._cutting:
                whole += self._partial[:MAX_LINE_BYTES] + b"\n"
            self._partial, self._cutting = b"", True
        return Chunk(whole, number)

    def flush(self) -> Chunk:
        """The last line of a stream that ended without an end of line."""
        data = b"" if self._cutting else self._partial
        self._partial, self._cutting = b"", False
        return Chunk(data + b"\n" if data else b"", self._number)

    def _whole(self, data: bytes) -> bytes:
        """Data that ends where a line does, without the rest of a line that was cut."""
        if self._cutting and data:
            data = data[min(at for at in (data.find(b"\n"), data.find(b"\r")) if at >= 0) :]
            self._cutting = False
        return data
