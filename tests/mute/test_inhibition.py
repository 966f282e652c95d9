"""Inhibition, as Alertmanager means it."""

from tests.mute.samples import firing, matchers

from oomwatch import wire
from oomwatch.core.mute.inhibition import Inhibition, Inhibitions
from oomwatch.core.mute.muter import Firing

GRAVER = Inhibition(matchers('severity="critical"'), matchers('severity=~"warning|info"'), ("node", "gpu", "run"))
LOST = Inhibition(matchers('alert="agent_silent"'), matchers('alert!="agent_silent"'), ("node",))

CRITICAL = firing("c", alert="full", severity="critical", node="n", gpu="0")
SILENT = firing("s", alert="agent_silent", severity="critical", node="n")


def _by(target: Firing, *others: Firing, rules: tuple[Inhibition, ...] = (GRAVER, LOST)) -> str | None:
    found = Inhibitions(rules, [target, *others]).mutes(target, 10.0)
    return found.by if found is not None else None


def test_a_critical_alert_covers_a_warning_about_the_same_subject() -> None:
    warning = firing(node="n", gpu="0")
    assert Inhibitions((GRAVER,), [CRITICAL, warning]).mutes(warning, 10) == wire.Mute(
        kind="inhibited", by="c", note="full"
    )
    assert _by(CRITICAL, warning) is None


def test_another_subject_is_not_covered() -> None:
    assert _by(firing(node="n", gpu="1"), CRITICAL) is None
    assert _by(firing(node="n"), CRITICAL) is None
    assert _by(firing(node="n", gpu="0", run="r"), CRITICAL) is None


def test_a_label_that_both_lack_is_equal() -> None:
    of_node = firing("c", alert="host", severity="critical", node="n")
    assert _by(firing(node="n"), of_node) == "c"


def test_a_lost_node_covers_all_that_is_on_it_but_itself() -> None:
    assert _by(CRITICAL, SILENT) == "s"
    assert _by(firing(node="n", gpu="3"), SILENT) == "s"
    assert _by(firing(node="other", gpu="3"), SILENT) is None
    assert _by(SILENT, CRITICAL) is None


def test_a_source_that_is_covered_itself_covers_all_the_same() -> None:
    of_card = Inhibition(matchers("alert=full"), matchers("alert=high"), ("gpu",))
    assert _by(CRITICAL, SILENT, rules=(of_card, LOST)) == "s"
    assert _by(firing(gpu="0"), CRITICAL, SILENT, rules=(of_card, LOST)) == "c"


def test_alerts_that_are_both_source_and_target_do_not_mute_each_other_or_themselves() -> None:
    any_of_another = Inhibition(matchers('severity=~".+"'), matchers('severity=~".+"'), ("node",))
    assert _by(firing("1", node="n"), firing("2", node="n"), rules=(any_of_another,)) is None


def test_what_is_both_is_muted_by_a_source_that_is_no_target() -> None:
    rule = Inhibition(matchers('severity=~"critical|warning"'), matchers('severity!="critical"'), ("node",))
    other_warning = firing("w2", node="n")
    assert _by(firing("w1", node="n"), other_warning, firing("c", severity="critical", node="n"),
               rules=(rule,)) == "c"  # fmt: skip
    assert _by(firing("i", severity="info", node="n"), other_warning, rules=(rule,)) == "w2"


def test_of_several_sources_the_one_that_was_told_first_is_named_until_it_is_over() -> None:
    later = firing("a", alert="leak", severity="critical", node="n", gpu="0")
    warning = firing(node="n", gpu="0")
    inhibitions = Inhibitions((GRAVER,), [warning, CRITICAL, later])
    named = [inhibitions.mutes(warning, 10)]
    inhibitions.remove(CRITICAL)
    named.append(inhibitions.mutes(warning, 10))
    inhibitions.remove(later)
    assert [mute and mute.by for mute in named] == ["c", "a"]
    assert inhibitions.mutes(warning, 10) is None


def test_what_is_removed_need_not_have_been_there() -> None:
    inhibitions = Inhibitions((GRAVER,))
    inhibitions.remove(CRITICAL)
    assert inhibitions.mutes(firing(node="n", gpu="0"), 10) is None
