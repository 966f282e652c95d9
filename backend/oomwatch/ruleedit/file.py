"""A rule file on disk: read with its digest, and replaced whole or not at all."""

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

from oomwatch.oserror import in_words
from oomwatch.ruleedit.mask import digest_of


class NotWritableError(Exception):
    """The file cannot be replaced. The text names it, says why, and what to do."""


class ChangedMeanwhileError(NotWritableError):
    """The file is another one by now than the one that was changed."""


class Replacement:
    """A new state of a file, written beside it and on the disk already. `take` puts it in place, `drop` forgets it."""

    def __init__(self, path: Path, text: str, *, instead_of: str | None) -> None:
        """`instead_of`: the text that it was made of; None where there is no file yet, or whatever it is.

        Raises NotWritableError; then nothing is left behind.
        """
        self._path = path.resolve()  # where the file is a link, what it points to is replaced
        self._instead_of = instead_of
        try:
            self._place = _written_beside(self._path, text.encode())
        except OSError as error:
            raise _not_writable(path, error) from error
        self.digest = digest_of(text)

    def take(self) -> tuple[int, int]:
        """Put it in the file's place, in one step; what was there is kept as FILE.bak. Gives its time (ns) and size.

        Raises NotWritableError, and ChangedMeanwhileError where the file is not what it was made of.
        """
        try:
            self._check_unchanged()
            _keep_copy(self._path)
            told = self._place.stat()
            os.replace(self._place, self._path)  # noqa: PTH105 - pathlib's would do the same
            _sync_folder(self._path.parent)
        except OSError as error:
            self.drop()
            raise _not_writable(self._path, error) from error
        return told.st_mtime_ns, told.st_size

    def _check_unchanged(self) -> None:
        if self._instead_of is not None and self._path.read_bytes() != self._instead_of.encode():
            self.drop()
            raise ChangedMeanwhileError(f"{self._path} was changed meanwhile by somebody else; read it again")

    def drop(self) -> None:
        with contextlib.suppress(OSError):
            self._place.unlink(missing_ok=True)


def backup_of(path: Path) -> Path:
    return path.with_name(path.name + ".bak")


def _written_beside(path: Path, content: bytes) -> Path:
    """In the same folder: only within one file system is a rename a single step."""
    if not os.access(path, os.W_OK) and path.exists():
        raise PermissionError(13, "it may not be written")  # a rename would replace it all the same
    number, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    place = Path(name)
    try:
        with open(number, "wb") as file:  # noqa: PTH123 - of a number
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            _copy_owner_and_mode(path, place)
        else:
            place.chmod(0o644)
    except BaseException:
        place.unlink(missing_ok=True)
        raise
    return place


def _copy_owner_and_mode(path: Path, place: Path) -> None:
    shutil.copymode(path, place)
    told = path.stat()
    if (told.st_uid, told.st_gid) != (os.getuid(), os.getgid()):
        with contextlib.suppress(PermissionError):
            os.chown(place, told.st_uid, told.st_gid)


def _keep_copy(path: Path) -> None:
    """The copy is written whole as well: it is what is left when all else goes wrong."""
    if not path.exists():
        return
    copy = _written_beside(backup_of(path), path.read_bytes())
    try:
        shutil.copymode(path, copy)
        os.replace(copy, backup_of(path))  # noqa: PTH105
    except OSError:
        copy.unlink(missing_ok=True)
        raise


def _sync_folder(folder: Path) -> None:
    """So that the rename outlives a power cut, where the file system can promise that."""
    number = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            os.fsync(number)
    finally:
        os.close(number)


def _not_writable(path: Path, error: OSError) -> NotWritableError:
    return NotWritableError(
        f"{path} cannot be replaced: {in_words(error)}; the file and its folder must be writable for the user "
        "that oomwatch runs as (in a container: mount the folder, and not read-only)"
    )
