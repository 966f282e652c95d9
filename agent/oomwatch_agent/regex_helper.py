"""A process that tries regular expressions of strangers on lines, under a deadline.

Python cannot break off a match that backtracks for hours. A process can be ended, and started again.
"""

import os
import select
import signal
import subprocess
import sys
import time

import msgspec

DEADLINE_SECONDS = 0.1
_START_SECONDS = 10.0  # a machine under load may take seconds to start a Python
_LONGEST_ANSWER_BYTES = 256 * 1024

# Read by a fresh interpreter, so that nothing of the agent's memory is in it. Lines of JSON in, lines of JSON out.
_PROGRAM = """
import json, re, sys
expressions = [re.compile(one) for one in json.loads(sys.stdin.readline())]
print(json.dumps("ready"), flush=True)
for line in sys.stdin:
    index, text = json.loads(line)
    match = expressions[index].search(text)
    found = {} if match is None else {key: value[:200] for key, value in match.groupdict().items() if value is not None}
    print(json.dumps(found), flush=True)
"""


class Helper:
    """One helper process, started with all the expressions. After a TimeoutError or OSError it is done with."""

    def __init__(self, expressions: list[str]) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our own program in our own interpreter
            [sys.executable, "-I", "-S", "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # a Ctrl-C in the agent's terminal is the agent's business
        )
        self._ask(msgspec.json.encode(expressions), _START_SECONDS)

    def search(self, index: int, text: str) -> dict[str, str]:
        """The named groups of an expression's first match in `text`; {} where there is none."""
        answer = self._ask(msgspec.json.encode((index, text.encode("utf-8", "replace").decode())), DEADLINE_SECONDS)
        return msgspec.json.decode(answer, type=dict[str, str])

    def close(self) -> None:
        """End the process, whatever it does."""
        self._process.send_signal(signal.SIGKILL)
        self._process.communicate()

    def _ask(self, question: bytes, within_seconds: float) -> bytes:
        assert self._process.stdin is not None  # noqa: S101
        assert self._process.stdout is not None  # noqa: S101
        self._process.stdin.write(question + b"\n")
        self._process.stdin.flush()
        answer, deadline = b"", time.monotonic() + within_seconds
        while not answer.endswith(b"\n"):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._process.stdout], [], [], left)[0]:
                raise TimeoutError
            block = os.read(self._process.stdout.fileno(), 65536)
            answer += block
            if not block or len(answer) > _LONGEST_ANSWER_BYTES:
                raise OSError("it ended" if not block else "it answers too much")
        return answer
