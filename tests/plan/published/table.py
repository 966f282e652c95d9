"""All published measurements that can be put into the terms of the formulas, and those that cannot, and why."""

from tests.plan.published import engines, mixed, swift, trainers, verl
from tests.plan.published.row import Fit, Peak


def peaks() -> tuple[Peak, ...]:
    """All measured peaks, by the constants as they are now."""
    return (
        *verl.peaks(),
        *trainers.torchtitan(),
        *trainers.torchtune(),
        *trainers.torchtune_models(),
        *trainers.litgpt(),
        *mixed.scratch(),
        *mixed.openrlhf(),
        *mixed.trl(),
        *mixed.universal(),
        *swift.megatron(),
        *swift.transformers(),
        *engines.pools(),
        *engines.quantized(),
        *engines.operations(),
        *engines.at_rest(),
    )


PEAKS: tuple[Peak, ...] = peaks()
FITS: tuple[Fit, ...] = (*verl.ends(), *mixed.ends())


def halves(rows: tuple[Peak, ...] = PEAKS) -> tuple[tuple[Peak, ...], tuple[Peak, ...]]:
    """Every second row, and the others: constants that fit the one half are held against the other."""
    return rows[0::2], rows[1::2]


# Rows of the table of published peaks that are not put into the terms of the formulas, and why.
UNMATCHED = {
    "DS1 card": "the engine's share of the card is not stated, and the column is a peak of the whole step",
    "E32": "a model that sees, with images on top; whether the engine's pool is counted is not stated",
    "FK2": "the shape of Qwen3.5-35B-A3B is not known here",
    "GC1": "the card is not stated, and with it how large a pool in the trainer's process may be",
    "H2a": "lengths of the responses are not stated and far below the cap of 64,000 tokens a GPU",
    "KV8 cache": "weights in a 4-bit format of its own",
    "LC1": "lengths are not stated",
    "LG10": "what quantization takes while it loads is not among the formulas",
    "LG4": "below what AdamW takes for these parameters: the optimizer is another one, and not stated",
    "NR2": "the card is not stated",
    "NR3b": "two GPUs of one sleeping engine held 2.4 and 7.2 GiB: no one figure is both",
    "SI1": "the card is not stated, and the figure holds the engine's pool",
    "SPX": "the number of GPUs is not stated, and the sequences were not divided as configured",
    "SW10": "45 GiB by the same formulas that meet its neighbours; the comment may belong to another script",
    "SW16": "lengths are caps of preference pairs that are far shorter",
    "SW39": "the teacher's size and share are not stated",
    "SW40": "the teacher's size and share are not stated",
    "TF1": "the model is not stated",
    "TI12": "micro batches of the pipeline are not stated",
    "TI13": "micro batches of the pipeline are not stated",
    "TI14": "micro batches of the pipeline are not stated",
    "TI15": "micro batches of the pipeline are not stated",
    "TI16": "micro batches of the pipeline are not stated",
    "TI19": "batch and length are not stated",
    "TI20": "length is not stated",
    "TI21": "whether 16 is the batch of a GPU or of all is not stated",
    "TL1": "length is not stated",
    "TL3": "length is not stated",
    "TT2": "twice TT1 for the same recipe: the optimizer is another one, and not stated",
    "TT4": "which activations are recomputed is not stated",
    "TT8": "which activations are recomputed or offloaded is not stated",
    "UT2": "less than its own QLoRA run (UT3): one of the two is not what it says",
    "UT3": "more than its own LoRA run (UT2): one of the two is not what it says",
}
