"""What a command says that is refused by the server it asks, and that it lets go of the answer.

From Python 3.14 on, an answer that is left to the garbage collector is a warning, and so a failure of these tests.
"""

import gc
from collections.abc import Iterator
from urllib.error import HTTPError

import pytest
from tests.server.receiver import Answer, Receiver, receiving

from oomwatch import up
from oomwatch.__main__ import main
from oomwatch.commands.client import Client, ServerError
from oomwatch.commands.installation import listening
from oomwatch.settings import Settings

BUSY = Answer(503, body=b'{"error": "the history is being repaired"}')


@pytest.fixture
def refusing() -> Iterator[Receiver]:
    with receiving() as server:
        server.always(BUSY)
        yield server
    gc.collect()


def test_a_refusal_is_said_in_the_servers_words_and_its_answer_is_closed(refusing: Receiver) -> None:
    with pytest.raises(ServerError, match=f"^{refusing.url}: the history is being repaired$") as raised:
        Client(refusing.url, None).ask("GET", "/api/v1/alerts")
    assert isinstance(raised.value.__cause__, HTTPError)
    assert raised.value.__cause__.closed


@pytest.mark.parametrize("command", ["alerts", "scorecard"])
def test_a_command_that_is_refused_fails_with_the_reason(
    command: str, refusing: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "--server", refusing.url]) == 1
    assert "the history is being repaired" in capsys.readouterr().err


def test_a_server_that_refuses_to_say_that_it_is_alive_is_not_taken_for_one_of_ours(refusing: Receiver) -> None:
    assert not up._is_alive(f"{refusing.url}/healthz")
    settings = Settings(listen=refusing.url.removeprefix("http://"))
    assert [finding.state for finding in listening.checks(settings)] == ["wrong"]
