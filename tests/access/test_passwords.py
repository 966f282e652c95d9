"""Passwords as they are kept, and how often somebody may try."""

import unicodedata

import pytest

from oomwatch.access.attempts import BY_ADDRESS, BY_NAME, FORGOTTEN_SECONDS, KEPT_MAX, Attempts
from oomwatch.access.password import COST, Cost, fits, hashed, is_outdated, objection

NOW = 1_700_000_000.0
CHEAP = Cost(4, 1, 1)


def test_a_password_fits_what_is_kept_of_it_and_no_other_does() -> None:
    kept = hashed("four words that rhyme")
    assert fits("four words that rhyme", kept)
    assert not fits("four words that rhyme ", kept)
    assert not fits("", kept)
    assert "rhyme" not in kept


def test_the_same_password_is_kept_differently_each_time() -> None:
    assert hashed("four words that rhyme", CHEAP) != hashed("four words that rhyme", CHEAP)


def test_a_hash_of_other_parameters_fits_and_is_said_to_be_outdated() -> None:
    kept = hashed("four words that rhyme", CHEAP)
    assert fits("four words that rhyme", kept)
    assert is_outdated(kept)
    assert not is_outdated(hashed("four words that rhyme"))


def test_it_costs_an_attacker_what_owasp_asks_for() -> None:
    assert (128 * COST.r * 2**COST.log2_n, COST.p) == (32 * 2**20, 3)


def test_a_letter_typed_as_two_characters_is_the_same_letter() -> None:
    kept = hashed("vier Wörter die sich reimen", CHEAP)
    assert fits(unicodedata.normalize("NFD", "vier Wörter die sich reimen"), kept)


def test_nobody_has_no_password_that_fits() -> None:
    assert not fits("", None)
    assert not fits("four words that rhyme", None)


def test_an_endless_password_is_no_work() -> None:
    assert not fits("x" * 300, hashed("x" * 300, CHEAP))


@pytest.mark.parametrize(
    ("password", "why"),
    [
        ("short", "12 to 256 characters"),
        ("x" * 257, "12 to 256 characters"),
        ("aaaaaaaaaaaaaaaa", "different characters"),
        ("lin-of-gpus12", "not the name"),
    ],
)
def test_a_password_that_is_easy_to_guess_is_refused_with_the_reason(password: str, why: str) -> None:
    assert why in (objection(password, "lin-of-gpus") or "")


def test_a_long_password_of_any_words_is_taken() -> None:
    assert objection("four words that rhyme", "lin") is None


# ---------------------------------------------------------------- attempts


def _fail(attempts: Attempts, name: str, address: str, times: int, now: float = NOW) -> None:
    for _ in range(times):
        attempts.begin(name, address, now)


def test_a_few_mistakes_cost_no_wait_and_each_further_one_doubles_it() -> None:
    attempts = Attempts()
    _fail(attempts, "lin", "10.0.0.1", BY_NAME.free - 1)
    assert attempts.wait_seconds("lin", "10.0.0.1", NOW) == 0
    waits = []
    for _ in range(9):
        attempts.begin("lin", "10.0.0.2", NOW)
        waits.append(attempts.wait_seconds("lin", "10.9.9.9", NOW))
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_a_wait_passes() -> None:
    attempts = Attempts()
    _fail(attempts, "lin", "10.0.0.1", BY_NAME.free + 1)
    assert attempts.wait_seconds("lin", "10.0.0.9", NOW + 1.5) == 0.5
    assert attempts.wait_seconds("lin", "10.0.0.9", NOW + 2) == 0


def test_a_name_keeps_nobody_else_waiting() -> None:
    attempts = Attempts()
    _fail(attempts, "lin", "10.0.0.1", BY_NAME.free + 1)
    assert attempts.wait_seconds("ada", "10.0.0.1", NOW) == 0


def test_who_tries_many_names_from_one_address_waits_longer_and_longer() -> None:
    attempts = Attempts()
    for number in range(BY_ADDRESS.free + 20):
        attempts.begin(f"name {number}", "10.0.0.1", NOW)
    assert attempts.wait_seconds("yet another", "10.0.0.1", NOW) == BY_ADDRESS.longest_seconds
    assert attempts.wait_seconds(None, "10.0.0.1", NOW) == BY_ADDRESS.longest_seconds
    assert attempts.wait_seconds("yet another", "10.0.0.2", NOW) == 0


def test_all_addresses_of_one_ipv6_network_are_one() -> None:
    attempts = Attempts()
    for number in range(BY_ADDRESS.free):
        attempts.begin(f"name {number}", f"2001:db8::{number:x}", NOW)
    assert attempts.wait_seconds("lin", "2001:db8::ffff", NOW) > 0
    assert attempts.wait_seconds("lin", "2001:db8:0:1::1", NOW) == 0


def test_who_succeeds_is_forgiven_and_the_guesses_of_others_at_that_address_are_not() -> None:
    attempts = Attempts()
    _fail(attempts, "lin", "10.0.0.1", BY_NAME.free - 1)
    for number in range(BY_ADDRESS.free - BY_NAME.free + 1):
        attempts.begin(f"name {number}", "10.0.0.1", NOW)
    attempts.begin("lin", "10.0.0.1", NOW)
    attempts.succeeded("lin", "10.0.0.1")
    assert attempts.wait_seconds("lin", "10.0.0.2", NOW) == 0
    assert attempts.wait_seconds("ada", "10.0.0.1", NOW) > 0


def test_mistakes_are_forgotten_in_time_and_a_clock_that_was_set_back_keeps_nobody_waiting() -> None:
    attempts = Attempts()
    _fail(attempts, "lin", "10.0.0.1", 100)
    assert attempts.wait_seconds("lin", "10.0.0.1", NOW + FORGOTTEN_SECONDS) == 0
    assert attempts.wait_seconds("lin", "10.0.0.1", NOW - 86400) == 0


def test_made_up_names_and_addresses_fill_no_memory() -> None:
    attempts = Attempts()
    for number in range(KEPT_MAX + 10):
        attempts.begin(str(number), f"{number} {'x' * 10_000}", NOW)
    assert len(attempts._by_name._failures) == len(attempts._by_address._failures) == KEPT_MAX
    assert max(map(len, attempts._by_address._failures)) < 50


def test_ipv4_clients_of_a_socket_of_both_families_are_told_apart() -> None:
    attempts = Attempts()
    for _ in range(BY_ADDRESS.free + 5):
        attempts.begin(None, "::ffff:192.0.2.1", NOW)
    assert attempts.wait_seconds(None, "::ffff:192.0.2.2", NOW) == 0
    assert attempts.wait_seconds(None, "192.0.2.1", NOW) > 0
