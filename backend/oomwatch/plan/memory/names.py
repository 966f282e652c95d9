"""What an estimate may name. Each has its words in the catalogue: plan.part.NAME, plan.moment.NAME and so on."""

from typing import Literal

PartName = Literal[
    "activations",
    "boundaries",
    "buckets",
    "context",
    "driver",
    "engine_outside",
    "gaps",
    "gathered",
    "gradients",
    "graphs",
    "head_gradient",
    "kv_pool",
    "layer",
    "left_behind",
    "logits",
    "offloaded",
    "optimizer",
    "optimizer_step",
    "outer_gradients",
    "processes",
    "profile",
    "residue",
    "rollout_weights",
    "sequences",
    "sleeping_weights",
    "waiting",
    "weights",
    "whole_gradients",
]
# When a phase holds most: of a pass that learns or asks, of the engine at work, of weights on their way to it.
MomentName = Literal["cache", "gradients", "layer", "scores", "step", "transfer"]
# What keeps a phase from running at all.
Trouble = Literal["cache_too_small", "no_cache"]
# What was not told and is taken for granted, or is left out.
Assumed = Literal["known_lengths", "longest_batch", "no_images", "no_reward_model"]
