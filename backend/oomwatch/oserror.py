"""What the system says of a failure, in words: without its number, and without the path, which the sentence names.

`str()` of an OSError is "[Errno 2] No such file or directory: 'a.log'"; asyncio's of a refused connection is "[Errno
111] Connect call failed ('127.0.0.1', 9400)", and httpx and NATS hand such texts on in errors of their own.
"""

import errno
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_NUMBERED = re.compile(r"\[Errno (-?\d+)\] ?")
# anyio's word for several refusals, which are in a group (`exceptions`); httpx' text of an ssl error.
_SAYS_NOTHING = re.compile(r"|All connection attempts failed|.*\(_ssl\.c:\d+\)", re.DOTALL)
_OPENSSL = re.compile(r"\[[^]]*\] ?| ?\(_ssl\.c:\d+\)")
_BROKEN_TLS = {
    "WRONG_VERSION_NUMBER": "it speaks no TLS there",
    "HTTP_REQUEST": "it was spoken to in plain HTTP, and wants TLS",
    "NO_CERTIFICATE_OR_CRL_FOUND": "there is no certificate in it",
    "PEM_LIB": "it is no PEM file",
    "KEY_VALUES_MISMATCH": "the key is not this certificate's",
}
# What a person can do, where nothing more is known than what the system said.
_REMEDIES = {
    errno.ENOENT: "is its name right?",
    errno.ENOTDIR: "is its name right?",
    errno.EISDIR: "name a file in it",
    errno.EACCES: "let this user in, or run this as another",
    errno.EPERM: "let this user do that, or run this as another",
    errno.EROFS: "name another place",
    errno.ENOSPC: "free space there, or name another place",
    errno.EDQUOT: "free space there, or name another place",
    errno.EFBIG: "raise the limit of a file's size (ulimit -f), or name another place",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.ENFILE: "raise the machine's limit of open files (sysctl fs.file-max)",
    errno.ENAMETOOLONG: "name a shorter one",
    errno.ELOOP: "its links lead in a circle: name the file itself",
    errno.EIO: "look at the kernel's log (dmesg): the disk may be failing",
    errno.ECONNREFUSED: "does the server run there, and listen on that port?",
    errno.ECONNRESET: "look at the log of the server there",
    errno.EHOSTUNREACH: "is the address right, and the network between the two up?",
    errno.ENETUNREACH: "is the address right, and the network between the two up?",
    errno.ETIMEDOUT: "is the address right, and no firewall between?",
}
_NO_NAME = "is the host's name right, and does the name service know it?"  # whatever getaddrinfo says
_NO_ANSWER = "is the address right, and no firewall between?"
_NO_TLS = "write http:// in place of https://, or have it speak TLS"
# What Python asks for since 3.13 (VERIFY_X509_STRICT), by OpenSSL's words: the authority is known, and lacks a field.
_LACKING = re.compile(r"key usage|key identifier|basic constraints", re.IGNORECASE)
_INCOMPLETE = "make that certificate anew, with what it lacks: docs/howto/access.md has the command"
_UNTRUSTED = "have the authority that signed it trusted: SSL_CERT_FILE names a PEM file with all that are"


def in_words(error: BaseException) -> str:
    """ "No such file or directory", "Connection refused", "no answer in time": of one line, for within a sentence."""
    inner = _cause(error)
    if isinstance(inner, UnicodeDecodeError):
        return f"it is no text in UTF-8 (byte {inner.start})"
    if _is_timeout(inner):
        return "no answer in time"
    if type(inner).__module__ == "ssl":
        return _of_tls(inner)
    if type(inner).__name__ == "URLError":
        return str(getattr(inner, "reason", inner))  # without "<urlopen error ...>"
    said = dict.fromkeys(_said(number, inner) for number in _numbers(inner))
    return ", ".join(said) or " ".join(str(inner).split()) or type(inner).__name__


def with_remedy(error: BaseException) -> str:
    """The same, and what a person can do about it where that is known: for the end of a sentence with the place."""
    remedy = _remedy(_cause(error))
    return f"{in_words(error)}; {remedy}" if remedy else in_words(error)


def is_incomplete(error: BaseException) -> bool:
    """Whether a certificate was refused for what it lacks, whoever signed it."""
    return _LACKING.search(getattr(error, "verify_message", None) or "") is not None


def with_place(error: BaseException) -> str:
    """The same after the file or folder that the error tells of, for who does not know which that is."""
    place = getattr(error, "filename2", None) or getattr(error, "filename", None)
    return f"{os.fsdecode(place)}: {with_remedy(error)}" if isinstance(place, str | bytes) else with_remedy(error)


def _cause(error: BaseException) -> BaseException:
    """What happened, of an error that only says that something did: of urllib ("reason"), anyio and httpx.

    What has a sentence of its own, such as our errors, is left as it is, whatever it came from.
    """
    reason = getattr(error, "reason", None)
    if type(error).__module__ == "ssl" or _is_timeout(error):
        return error
    if not isinstance(reason, BaseException) and not _SAYS_NOTHING.fullmatch(str(error)):
        return error
    # The context last: httpcore's, within httpx', has no cause but it.
    inner = (reason, error.__cause__, *getattr(error, "exceptions", ()), error.__context__)
    found = (_cause(one) for one in inner if isinstance(one, BaseException))
    return next(found, error)


def _is_timeout(error: BaseException) -> bool:
    """By its name too: before Python 3.11 asyncio's is a class of its own. One with a number is a connection's."""
    return type(error).__name__ == "TimeoutError" and getattr(error, "errno", None) is None


def _of_tls(error: BaseException) -> str:
    """By its attributes: ssl is not imported for it, which takes memory that an agent without TLS does not need."""
    untrusted = getattr(error, "verify_message", None)
    if untrusted:
        return f"its certificate is not trusted: {untrusted}"
    reason = getattr(error, "reason", None) or _OPENSSL.sub("", str(error)).replace(" ", "_").upper()
    return _BROKEN_TLS.get(reason) or str(reason).lower().replace("_", " ")


def _number(error: BaseException) -> int | None:
    own = getattr(error, "errno", None)
    return own if isinstance(error, OSError) and isinstance(own, int) else None


def _numbers(error: BaseException) -> list[int]:
    """Its own; of an error that only tells of others (several addresses, each refused) those in its text."""
    own = _number(error)
    if own is not None:
        return [own]
    return [int(number) for number in _NUMBERED.findall(str(error))]


def _said(number: int, error: BaseException) -> str:
    """By its number, since asyncio's words for it are other ones; those of names that lead nowhere have their own."""
    if number in errno.errorcode:
        return os.strerror(number)
    return getattr(error, "strerror", None) or _NUMBERED.sub("", str(error))


def _remedy(error: BaseException) -> str | None:
    if _is_timeout(error):
        return _NO_ANSWER
    if getattr(error, "verify_message", None):
        return _INCOMPLETE if is_incomplete(error) else _UNTRUSTED
    if type(error).__name__ == "gaierror":
        return _NO_NAME
    if type(error).__module__ == "ssl":
        return _NO_TLS if getattr(error, "reason", None) == "WRONG_VERSION_NUMBER" else None
    return next((_REMEDIES[number] for number in _numbers(error) if number in _REMEDIES), None)


@contextmanager
def written_out() -> Iterator[None]:
    """What is printed within is written out at its end. A reader that has seen enough, such as head, ends the program.

    That is no failure. Python writes what is left as it ends, and calls it one then.
    """
    try:
        try:
            yield
        finally:
            if sys.stdout is not None:  # as it is where a program is started without
                sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(0) from None
