"""All checks, about in the order in which verl comes upon what they find. One file per kind of rule, one line here."""

from collections.abc import Callable, Iterator

from oomwatch.plan.checks.groups import engine_is_whole, engines_fit, groups_fit, sharing_removes_padding
from oomwatch.plan.checks.kinds import kinds_are_right
from oomwatch.plan.checks.micro import (
    deprecated_fits,
    engines_cut_critics_by_tokens,
    engines_read_no_deprecated,
    megatron_needs_both,
    mini_batches_divide,
    one_setting_each,
)
from oomwatch.plan.checks.step import (
    deals_are_even,
    mini_batches_fill_step,
    passes_divide,
    step_divides,
    step_holds_mini_batch,
    step_is_filled,
    tokens_hold_longest,
)
from oomwatch.plan.checks.values import (
    counts_are_positive,
    estimator_is_known,
    loss_is_known,
    mode_is_there,
    rank_is_possible,
    shares_are_possible,
    turns_have_tools,
    validation_samples,
)
from oomwatch.plan.problem import Problem
from oomwatch.plan.reader import Reader

Check = Callable[[Reader], Iterator[Problem]]
CHECKS: tuple[Check, ...] = (
    kinds_are_right,
    counts_are_positive,
    shares_are_possible,
    estimator_is_known,
    groups_fit,
    megatron_needs_both,
    step_divides,
    one_setting_each,
    step_holds_mini_batch,
    deprecated_fits,
    loss_is_known,
    sharing_removes_padding,
    validation_samples,
    turns_have_tools,
    rank_is_possible,
    mini_batches_divide,
    engines_read_no_deprecated,
    engines_cut_critics_by_tokens,
    mode_is_there,
    engine_is_whole,
    engines_fit,
    deals_are_even,
    passes_divide,
    mini_batches_fill_step,
    step_is_filled,
    tokens_hold_longest,
)
