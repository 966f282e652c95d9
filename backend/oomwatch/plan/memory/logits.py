"""Scores over the vocabulary and what is made of them: the part that is most often misestimated.

It is the number of copies alive at once that counts. Each constant is the sum of the copies that the code in question
makes, in bytes a token and word of the vocabulary.
"""

from oomwatch.plan.memory.part import Part, amount
from oomwatch.plan.memory.workload import Logits, Pass

# 16-bit scores and their gradient: log-probabilities by FlashAttention's cross entropy (verl with remove_padding).
LOG_PROBS = 4.0
# "T x v x (4 + 2 + 1)": scores, an fp32 temporary and a mask or gradient share of it; entropy by a compiled function.
LOG_PROBS_AND_ENTROPY = 7.0
# Scores alone, worked through a chunk at a time.
SCORES = 2.0
# scores 2, cast 4, softmax 4, product 4: entropy step by step under autocast, without gradients (verl with padding).
EAGER_ENTROPY = 14.0
# The same and what comes back through them: product 4, softmax 4, scores 2.
EAGER_ENTROPY_LEARNING = 24.0
# Megatron's cross entropy over a divided vocabulary: scores 2, fp32 in place of which softmax and gradient stand 4, 2.
DIVIDED_VOCABULARY = 8.0
# scores 2, cast 4, log-softmax 4, its gradient 4: torch's cross entropy on scores that were cast to fp32.
CROSS_ENTROPY = 14.0
# the same, with the gradient of the cast beside that of the softmax, and of the scores: older Hugging Face losses.
CROSS_ENTROPY_EAGER = 20.0
CHUNK_BYTES = 12.0  # of a chunk while it is worked on: cast, softmax, product


def logits(work: Pass, vocab: int) -> Part | None:
    """The scores of a pass at their worst moment."""
    scores = work.logits
    whole, some = scores.bytes_each * scores.tokens, scores.some_bytes_each * scores.some_tokens
    size = (whole + some) * vocab / scores.shards
    if not size:
        return None
    return Part(
        name="logits",
        stay="per_token",
        bytes=round(size),
        formula=_formula(scores, vocab),
        source=scores.reason,
        spread=0.25,
    )


def _formula(scores: Logits, vocab: int) -> str:
    each = vocab / scores.shards
    terms = [(scores.bytes_each, scores.tokens), (scores.some_bytes_each, scores.some_tokens)]
    shown = [f"{width:.3g} bytes x {amount(tokens)} tokens" for width, tokens in terms if width * tokens]
    return f"({' + '.join(shown)}) x {amount(each)} words"
