"""What Ray's jobs are called before and after their driver says so."""

from oomwatch import wire
from oomwatch_agent.ray_jobs import TELL_AGAIN_SECONDS, Job, JobNames
from oomwatch_agent.source import KnownBy

JOB = Job("session_1", "01000000")


def test_a_job_has_the_same_stand_in_on_every_node() -> None:
    names = JobNames()
    names.see(JOB)
    assert names.name("session_1", "01000000") == ("session_1 job 01000000", KnownBy.RAY_JOB)


def test_a_name_is_told_once_and_again_every_few_hours() -> None:
    names = JobNames()
    assert names.news(0.0) == []
    names.learn(JOB, "demo/qwen")
    (told,) = names.news(10.0)
    assert (told.body, told.run) == (wire.RunNamed(provisional=JOB.stand_in), "demo/qwen")
    names.learn(JOB, "demo/qwen")
    assert names.news(9.0 + TELL_AGAIN_SECONDS) == []
    assert names.news(10.0 + TELL_AGAIN_SECONDS) == [told]


def test_a_name_that_changes_is_told_at_once() -> None:
    names = JobNames()
    for now, run in enumerate(("demo/qwen", "demo/qwen-2")):
        names.learn(JOB, run)
        assert [told.run for told in names.news(float(now))] == [run]


def test_what_concerns_a_whole_session_is_of_its_only_job_or_of_none() -> None:
    names = JobNames()
    assert names.name("session_1", None)[0] is None
    names.see(JOB)
    assert names.name("session_1", None)[0] == JOB.stand_in
    names.see(Job("session_1", "02000000"))
    assert names.name("session_1", None)[0] is None


def test_a_long_name_fits_the_protocol() -> None:
    assert len(Job("s" * 300, "01000000").stand_in) == wire.NAME_CHARS_MAX
