"""Single parts by numbers that can be worked out on paper, and how settings change a model's parts."""

import msgspec
import pytest

from oomwatch.plan.memory.activations import boundaries, kept, layer_bytes_per_token
from oomwatch.plan.memory.divide import parameters_held
from oomwatch.plan.memory.engine import asleep, awake
from oomwatch.plan.memory.kv import bytes_a_token, pool
from oomwatch.plan.memory.moments import at_rest, moments
from oomwatch.plan.memory.optimizer import step_copy, whole_gradients
from oomwatch.plan.memory.part import amount, total
from oomwatch.plan.memory.weights import gathered, weights
from oomwatch.plan.memory.workload import Engine, Logits, Model, Pass, Shards, Widths
from oomwatch.plan.models import ModelShape, shape_named

GIB = 2**30


def shape(name: str) -> ModelShape:
    found = shape_named(name)
    assert found is not None
    return found


SEVEN, SPARSE = shape("Qwen2.5-7B"), shape("Qwen3-30B-A3B")


def test_megatron_takes_eighteen_bytes_a_parameter_and_fewer_with_its_distributed_optimizer() -> None:
    widths = Widths(weights=2, gradients=4, optimizer=12)

    def resident(data: int) -> float:
        shards = Shards(data=data, tensor=2, weights=False, gradients=False)
        model = Model(shape=SEVEN, shards=shards, widths=widths, gathers_whole_units=False)
        ended = next(moment for moment in moments(model, Pass(tokens=1)) if moment.name == "step")
        return ended.bytes / (SEVEN.parameters / 2)

    assert resident(1) == pytest.approx(18)
    assert resident(4) == pytest.approx(6 + 12 / 4)


def test_experts_are_divided_by_their_own_groups() -> None:
    whole = Model(shape=SPARSE, shards=Shards(weights=False))
    divided = Model(shape=SPARSE, shards=Shards(data=8, expert=8, weights=False))
    saved = parameters_held(whole, by_data=False) - parameters_held(divided, by_data=False)
    assert saved == pytest.approx(SPARSE.expert_parameters * 7 / 8)
    assert parameters_held(divided, by_data=True) == pytest.approx(
        SPARSE.dense_parameters / 8 + SPARSE.expert_parameters / 8
    )


def test_each_expert_is_divided_as_the_rest_unless_told_otherwise() -> None:
    alike = Model(shape=SPARSE, shards=Shards(data=4, tensor=2, expert=4, weights=False))
    whole = msgspec.structs.replace(alike, shards=msgspec.structs.replace(alike.shards, expert_tensor=1))
    more = parameters_held(whole, by_data=False) - parameters_held(alike, by_data=False)
    assert more == pytest.approx(SPARSE.expert_parameters / 4 - SPARSE.expert_parameters / 8)


def test_a_pipelines_fullest_stage_holds_an_embedding_or_a_head_but_not_both() -> None:
    staged = Model(shape=SEVEN, shards=Shards(pipeline=4, weights=False))
    layers = SEVEN.parameters - 2 * SEVEN.embedding_parameters
    assert parameters_held(staged, by_data=False) == pytest.approx(layers / 4 + SEVEN.embedding_parameters)


def test_a_pipelines_last_stage_makes_the_scores_and_its_first_keeps_many_micro_batches() -> None:
    staged = Model(shape=SEVEN, shards=Shards(pipeline=4, weights=False))
    work = Pass(tokens=1000, logits=Logits(tokens=1000, bytes_each=8), in_flight=4)
    by_name = {moment.name: {part.name: part.bytes for part in moment.parts} for moment in moments(staged, work)}
    assert by_name["layer"]["boundaries"] == 4 * by_name["scores"]["boundaries"]
    assert "logits" not in by_name["layer"]


def test_a_critic_has_no_head_over_the_vocabulary() -> None:
    actor, critic = Model(shape=SEVEN), Model(shape=SEVEN, scalar_head=True)
    work = Pass(tokens=4096, logits=Logits(tokens=4096, bytes_each=4))
    assert parameters_held(actor, by_data=True) - parameters_held(critic, by_data=True) == SEVEN.head_parameters
    assert "logits" not in {part.name for moment in moments(critic, work) for part in moment.parts}


def test_adapters_have_states_and_the_base_has_none() -> None:
    model = Model(shape=SEVEN, trainable=10_000_000)
    ended = next(moment for moment in moments(model, Pass(tokens=1)) if moment.name == "gradients")
    sizes = {part.name: part.bytes for part in ended.parts}
    assert (sizes["gradients"], sizes["optimizer"]) == (40_000_000, 80_000_000)
    assert sizes["weights"] == 4 * SEVEN.parameters


def test_checkpointing_keeps_two_bytes_of_each_layers_input() -> None:
    part = boundaries(Model(shape=SEVEN), Pass(tokens=1000))
    assert part is not None
    assert part.bytes == 2 * 1000 * 3584 * 28
    assert boundaries(Model(shape=SEVEN), Pass(tokens=1000, boundaries_on_host=True)) is None


def test_what_layers_keep_grows_with_the_tokens_and_shrinks_with_tensor_parallelism() -> None:
    everything = Pass(tokens=1000, recompute="none")
    one, two = Model(shape=SEVEN), Model(shape=SEVEN, shards=Shards(tensor=2))
    found = kept(one, everything)
    assert found is not None
    assert found.bytes == round(layer_bytes_per_token(one) * 28 * 1000)
    assert layer_bytes_per_token(two) == layer_bytes_per_token(one) / 2


def test_whole_weights_are_gathered_by_layers_and_only_where_they_are_divided() -> None:
    alone = Model(shape=SEVEN, widths=Widths(weights=2, gradients=2, optimizer=4))
    divided = msgspec.structs.replace(alone, shards=Shards(data=8))
    assert gathered(alone) is None
    part = gathered(divided)
    assert part is not None
    assert part.bytes == pytest.approx(2 * (2 * SEVEN.layer_parameters + 2 * SEVEN.embedding_parameters), abs=1)
    stays = gathered(msgspec.structs.replace(divided, keeps_gathered=True))
    assert stays is not None
    assert stays.bytes == 2 * SEVEN.parameters


def test_gradients_whose_synchronisation_waits_are_whole() -> None:
    part = whole_gradients(Model(shape=SEVEN, shards=Shards(data=8)), Pass(tokens=1, sync_deferred=True))
    assert part is not None
    assert part.bytes == 4 * SEVEN.parameters


def test_the_optimizers_step_takes_a_copy_for_a_moment_unless_it_is_fused() -> None:
    part = step_copy(Model(shape=SEVEN, widths=Widths(step=4)))
    assert part is not None
    assert part.bytes == 4 * SEVEN.parameters
    fused = step_copy(Model(shape=SEVEN))
    assert fused is None or fused.bytes == 0


def test_offloaded_models_rest_on_the_host() -> None:
    here = Model(shape=SEVEN, shards=Shards(data=8))
    assert total(at_rest(here)) == pytest.approx(12 * SEVEN.parameters / 8, abs=8)
    assert at_rest(msgspec.structs.replace(here, weights_on_host=True, optimizer_on_host=True)) == ()
    assert weights(msgspec.structs.replace(here, streamed=True)) is None


def test_wide_models_peak_in_the_step_and_long_batches_at_the_scores() -> None:
    model = Model(shape=SEVEN, shards=Shards(data=2), widths=Widths(step=4))
    few = Pass(tokens=500, logits=Logits(tokens=500, bytes_each=4))
    many = Pass(tokens=60_000, logits=Logits(tokens=60_000, bytes_each=7))
    worst = [max(moments(model, work), key=lambda moment: moment.bytes).name for work in (few, many)]
    assert worst == ["step", "scores"]


def test_the_cache_of_a_token_is_what_vllm_counts() -> None:
    assert bytes_a_token(Engine(shape=shape("Qwen3-4B"))) == 147_456
    assert bytes_a_token(Engine(shape=SEVEN, tensor=8)) == 2 * 28 * 128 * 2


def test_vllm_shares_the_card_and_sglang_what_is_free_of_it() -> None:
    vllm = Engine(shape=SEVEN, share=0.5, graphs=False)
    assert total(awake(vllm, 80 * GIB)) == pytest.approx(40 * GIB, abs=4)
    sglang = msgspec.structs.replace(vllm, name="sglang")
    assert pool(sglang, 80 * GIB, 60 * GIB).bytes == 30 * GIB - 2 * SEVEN.parameters


def test_a_sleeping_engine_keeps_more_where_it_talks_to_others() -> None:
    assert asleep(Engine(shape=SEVEN)).bytes < asleep(Engine(shape=SEVEN, tensor=2)).bytes


@pytest.mark.parametrize(("number", "text"), [(7.6156e9, "7.62 G"), (151_936, "152 k"), (24, "24"), (3.5e6, "3.5 M")])
def test_counts_are_shown_short(number: float, text: str) -> None:
    assert amount(number) == text
