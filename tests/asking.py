"""A page of a program on loopback, whatever the answer is."""

import urllib.error
import urllib.request

ANSWER_SECONDS = 10.0
# Loopback is never asked for through a proxy that the environment names.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def answer_of(url: str) -> tuple[int, bytes]:
    """The status of a GET, and what is said. Raises OSError where nobody answers."""
    try:
        with _OPENER.open(url, timeout=ANSWER_SECONDS) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code, refusal.read()
