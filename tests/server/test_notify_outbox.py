"""Which of the messages that have not arrived goes next."""

from tests.server.notify_samples import notice, transition

from oomwatch import wire
from oomwatch.notify.outbox import Mail, Outbox, mail_of

NOW = 100.0


def mail(
    run: str, severity: wire.Severity = "warning", *, attempts: int = 0, retry_at: float = 0.0, gpu: int = 0
) -> Mail:
    made = mail_of("ops", notice([transition(gpu, run=run, severity=severity)]))
    return made._replace(letter=made.letter._replace(attempts=attempts), retry_at=retry_at)


def outbox(*mails: Mail) -> Outbox:
    box = Outbox()
    for one in mails:
        box.put(one)
    return box


def order(box: Outbox) -> list[str]:
    said = []
    while (one := box.next(NOW)) is not None:
        said.append(one.notice.labels["run"])
        box.remove(one)
    return said


def test_what_never_failed_goes_first_and_then_the_gravest() -> None:
    box = outbox(mail("failed", "critical", attempts=1), mail("usual"), mail("grave", "critical"))
    assert order(box) == ["grave", "usual", "failed"]


def test_several_go_at_once_where_so_many_wait_that_never_failed_the_gravest_first() -> None:
    box = outbox(mail("failed", "critical", attempts=1), mail("usual"), mail("grave", "critical"), mail("other"))
    assert [one.notice.labels["run"] for one in box.next_several(NOW, 3)] == ["grave", "usual", "other"]
    assert box.next_several(NOW, 4) == []


def test_messages_of_an_incident_keep_their_order() -> None:
    first, second = mail("a", attempts=3), mail("a", "critical")
    second = second._replace(letter=second.letter._replace(incident=first.letter.incident))
    box = outbox(first, second, mail("b"))
    assert box.next(NOW) != second
    assert not box.remove(first)
    assert box.next(NOW) == second
    assert box.remove(second)


def test_a_message_waits_for_its_time_until_the_channel_works_again() -> None:
    waiting = mail("a", attempts=1, retry_at=500.0)
    box = outbox(waiting)
    assert (box.next(NOW), box.next_at()) == (None, 500.0)
    box.hurry()
    assert box.next(NOW) == waiting._replace(retry_at=0.0)


def test_a_message_is_there_once() -> None:
    assert len(outbox(mail("a"), mail("a"))) == 1
