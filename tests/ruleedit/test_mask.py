"""A rule file as it may be shown: without its secrets, which can be put back and cannot be had by a trick."""

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from oomwatch.ruleedit.marks import EditError
from oomwatch.ruleedit.mask import digest_of, masked, scrubbed
from oomwatch.ruleedit.unmask import restored
from oomwatch.rulefile import parse_rules

RULES = """\
rules:
  - alert: full
    when: {kind: threshold, metric: gpu_used_ratio, above: 85%}
    summary: "see https://wiki.example.org/full"
"""
NOTIFY = """\
notify:
  language: zh
  channels:
    - {kind: slack, name: team, url: "https://hooks.slack.com/services/T0/B0/xyzzy"}  # ours
    # - {kind: slack, name: old, url: https://hooks.slack.com/services/T0/B0/former}
    - kind: webhook
      name: ops
      url: https://user:pass@ops.example.org/hook
      secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw
    - {kind: webhook, name: shown, url_env: OPS_URL, secret_file: /run/secrets/ops}
"""
FILE = RULES + NOTIFY
SECRETS = ("xyzzy", "former", "user:pass", "ops.example.org", "whsec_")


def placeholder(number: int, text: str = FILE) -> str:
    return f'"secret-{number}-of-{digest_of(text)[:8]}"'


def test_no_secret_is_shown_and_all_else_is() -> None:
    shown = masked(FILE).text
    assert [secret for secret in SECRETS if secret in shown] == []
    assert "see https://wiki.example.org/full" in shown
    assert "url_env: OPS_URL, secret_file: /run/secrets/ops" in shown
    assert f"name: team, url: {placeholder(1)}}}  # ours" in shown
    assert len(shown.splitlines()) == len(FILE.splitlines())


def test_what_is_shown_is_still_a_rule_file() -> None:
    assert parse_rules(masked(FILE).text).rules == parse_rules(FILE).rules


def test_secrets_come_back_where_they_were() -> None:
    assert restored(masked(FILE).text, FILE) == FILE


def test_a_changed_rule_leaves_the_secrets_theirs() -> None:
    changed = masked(FILE).text.replace("above: 85%", "above: 80%")
    assert restored(changed, FILE) == FILE.replace("above: 85%", "above: 80%")


def test_quotes_around_a_placeholder_may_be_others() -> None:
    text = masked(FILE).text.replace('"secret', "'secret").replace(digest_of(FILE)[:8] + '"', digest_of(FILE)[:8] + "'")
    assert restored(text, FILE) == FILE


def test_a_new_secret_may_be_written_instead() -> None:
    text = masked(FILE).text.replace(placeholder(1), "https://hooks.slack.com/services/new")
    assert restored(text, FILE) == FILE.replace(
        '"https://hooks.slack.com/services/T0/B0/xyzzy"', "https://hooks.slack.com/services/new"
    )


def test_keys_that_this_version_does_not_know_are_hidden_by_their_names() -> None:
    text = RULES + "notify:\n  channels:\n    - {kind: pager, routing_key: abcdef, headers: {X-Auth: hush}, to: [a]}\n"
    shown = masked(text).text
    assert "abcdef" not in shown
    assert "hush" not in shown
    assert "X-Auth" in shown
    assert "to: [a]" in shown
    assert restored(shown, text) == text


def test_an_address_is_hidden_whatever_its_key_is_called() -> None:
    text = RULES + "notify:\n  channels:\n    - {kind: x, to: tgram://123:abc/9}\n"
    assert "123:abc" not in masked(text).text


def test_a_section_that_this_version_does_not_know_is_hidden_alike() -> None:
    text = FILE + "elsewhere:\n  - {to: 'https://user:hush@example.org', token: hushhush, every: 5m}\n"
    shown = masked(text).text
    assert "hush" not in shown
    assert "every: 5m" in shown
    assert restored(shown, text) == text


def test_of_a_file_that_is_no_yaml_everything_that_looks_secret_is_hidden() -> None:
    broken = FILE + "  - [\n"
    shown = masked(broken).text
    assert [secret for secret in SECRETS if secret in shown] == []
    assert restored(shown, broken) == broken


@pytest.mark.parametrize("misspelt", ["secre:", "secret", "secre}:"])
def test_a_secret_under_a_misspelt_key_is_hidden_by_its_looks(misspelt: str) -> None:
    text = FILE.replace("      secret:", f"      {misspelt}")
    assert "whsec_" not in masked(text).text


def test_a_value_over_several_lines_is_hidden_whole() -> None:
    text = (
        RULES
        + "notify:\n  channels:\n    - kind: slack\n      name: a\n      url: >-\n        https://hooks.example/a\n"
    )
    assert "hooks.example" not in masked(text).text
    assert restored(masked(text).text, text) == text


@pytest.mark.parametrize(
    "trick",
    [
        lambda text: text.replace('summary: "see', f'summary: "{placeholder(4)[1:-1]} see'),  # within a sentence
        lambda text: text.replace('summary: "see https://wiki.example.org/full"', f"summary: {placeholder(4)}"),
        lambda text: text.replace(f"url: {placeholder(1)}", f'url: "https://evil.example/{placeholder(4)[1:-1]}"'),
        lambda text: text.replace("name: team", f"name: {placeholder(4)}"),
        lambda text: text.replace(f"url: {placeholder(3)}", "url: https://evil.example/"),
        lambda text: text.replace(f"url: {placeholder(3)}\n      secret", "url_env: EVIL\n      url"),
        lambda text: text + f"# {placeholder(4)}\n",
        lambda text: text.replace("rules:", f"rules:  # seen {placeholder(1)}"),
    ],
)
def test_no_trick_has_a_secret_shown_or_sent_elsewhere(trick: Callable[[str], str]) -> None:
    text = trick(masked(FILE).text)
    assert text != masked(FILE).text
    with pytest.raises(EditError, match="placeholder"):
        restored(text, FILE)


@pytest.mark.parametrize("wrong", ["secret-9-of-{mark}", "secret-0-of-{mark}", "secret-1-of-00000000"])
def test_a_placeholder_of_another_state_of_the_file_is_refused_with_its_line(wrong: str) -> None:
    text = masked(FILE).text.replace(placeholder(1), wrong.format(mark=digest_of(FILE)[:8]))
    with pytest.raises(EditError, match=r"line 8: .* stands for no secret"):
        restored(text, FILE)


def test_of_a_file_that_was_changed_meanwhile_it_is_said_what_happened_and_what_to_do() -> None:
    with pytest.raises(EditError, match=r"line 13: the file was changed on disk since .*; read the file again"):
        restored(masked(FILE).text, FILE + "# more\n")


def test_an_address_of_this_machine_in_a_comment_is_an_example_and_no_secret() -> None:
    shipped = (Path(__file__).resolve().parents[2] / "alerts.yaml").read_text(encoding="utf-8")
    assert masked(shipped).secrets == ()
    for url in ("http://127.0.0.1:9/hook?token=a1", "http://me:pw@localhost/", "https://localhost.evil.org/hook"):
        assert masked(f"{RULES}# url: {url}\n").secrets == (url,)


def test_a_sentence_about_the_file_quotes_no_secret() -> None:
    said = scrubbed(['expected one of a, b, got "https://hooks.slack.com/services/T0/B0/xyzzy"', "fine"], RULES, FILE)
    assert said == ['expected one of a, b, got "(secret)"', "fine"]


@pytest.mark.parametrize(
    "hostile",
    [
        "a" * 300_000,
        "-" * 300_000,
        ":" * 300_000,
        "url_" * 75_000,
        "x: y #\n" * 2_000 + "#\n" * 100_000,
        f"# {placeholder(1)}\n" * 5_000,
        "[ " + "secret-1-of-00000000 " * 10_000,
    ],
    ids=["letters", "dashes", "colons", "keys", "comments", "placeholders", "a broken list"],
)
def test_no_text_takes_longer_than_its_size(hostile: str) -> None:
    """What grew with the square of the size would take minutes here."""
    begun = time.process_time()
    masked(hostile)
    with contextlib.suppress(EditError):
        restored(hostile + masked(FILE).text, FILE)
    assert time.process_time() - begun < 20
