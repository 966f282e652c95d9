"""Regular expressions as RE2 runs them: in time that no pattern can stretch, whoever wrote it.

Python's own go back and try again, which one pattern of thirty characters can make take years; matchers come over the
network. RE2 is also what Alertmanager and Prometheus use, so a matcher means here what it means there.
"""

from functools import lru_cache

import re2

PATTERN_CHARS_MAX = 500
MEMORY_BYTES_MAX = 2**20  # of one pattern: what its repetitions may be unrolled to


def check_pattern(pattern: str) -> None:
    """Raises ValueError with RE2's own words where it is no pattern."""
    _compiled(pattern)


@lru_cache(maxsize=50_000)  # labels and patterns are few, and the library's wrapper takes ten times as long as this
def matches_whole(pattern: str, text: str) -> bool:
    """Whether all of the text is one that the pattern describes. Raises ValueError as `check_pattern`."""
    return _compiled(pattern).fullmatch(text) is not None


@lru_cache(maxsize=4096)  # service.silences.PATTERNS_MAX, and those of alerts.yaml and of previews
def _compiled(pattern: str) -> "re2._Regexp":
    if len(pattern) > PATTERN_CHARS_MAX:
        raise ValueError(f"it is longer than {PATTERN_CHARS_MAX} characters")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MEMORY_BYTES_MAX
    options.dot_nl = True
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        said = error.args[0] if error.args else "it cannot be read"
        raise ValueError(said.decode(errors="replace") if isinstance(said, bytes) else str(said)) from error
