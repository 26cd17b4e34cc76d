"""What a model takes of a chip's HBM, against numbers worked by hand and against what must hold for every model."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workloads.spec import Slice, catalogue, resolve_slice
from workloads.spec.decoder import LlamaConfig
from workloads.spec.fit import GIB, MARGIN, Fit, serving_fit, smallest, tensor_degrees, training_fit
from workloads.spec.layout import mesh_shape

# https://huggingface.co/meta-llama/Meta-Llama-3-8B/blob/main/config.json and the same of 70B: 8,030,261,248 and
# 70,553,706,496 weights.
LLAMA_8B = LlamaConfig(128256, 4096, 32, 32, 8, 128, 14336, 8192, tie_embeddings=False)
LLAMA_70B = LlamaConfig(128256, 8192, 80, 64, 8, 128, 28672, 8192, tie_embeddings=False)
# 9 heads, 3 KV heads: https://huggingface.co/HuggingFaceTB/SmolLM2-135M-Instruct/blob/main/config.json
SMOLLM = LlamaConfig(49152, 576, 30, 9, 3, 64, 1536, 8192)


def serving(config: LlamaConfig, slots: int, context: int, generation: str, topology: str) -> Fit:
    return serving_fit(config, slots, context, resolve_slice(generation, topology))


def test_8b_alone_on_a_v5e_chip_lacks_a_quarter_of_a_gib() -> None:
    # Weights 8,030,261,248 x 2 bytes. KV: 2 x 32 layers x 4 slots x 1024 tokens x 8 heads x 128 x 2 bytes = 512 MiB.
    # Logits: 4 slots x 128256 x 4 bytes. Margin: 16 GiB / 20.
    fit = serving(LLAMA_8B, 4, 1024, "v5e", "1x1")
    assert fit.parts == {"weights": 16_060_522_496, "kv_cache": 536_870_912, "logits": 2_052_096}
    assert fit.margin == 858_993_460
    assert (fit.used, fit.needed, fit.hbm) == (16_599_445_504, 17_458_438_964, 17_179_869_184)
    assert not fit.holds
    assert fit.percent == 97


def test_8b_on_four_v5e_chips_is_divided_by_its_heads() -> None:
    # 32 heads over 4: all but the norms (65 x 4096 = 266,240 numbers) is a quarter:
    # (8,030,261,248 - 266,240) / 4 + 266,240 = 2,007,764,992.
    fit = serving(LLAMA_8B, 4, 1024, "v5e", "2x2")
    assert fit.parts == {"weights": 2 * 2_007_764_992, "kv_cache": 536_870_912 // 4, "logits": 2_052_096}
    assert fit.holds


def test_8b_alone_on_a_v6e_chip_fits() -> None:
    fit = serving(LLAMA_8B, 4, 1024, "v6e", "1x1")
    assert (fit.used, fit.margin) == (16_599_445_504, 1_717_986_919)
    assert fit.holds


def test_8b_over_eight_chips_is_what_the_compiler_says_of_it() -> None:
    # libtpu 0.0.52 compiled such a decode step: arguments of 1.87 GiB weights and 2.0 GiB KV cache on each device.
    fit = serving(LLAMA_8B, 64, 2048, "v6e", "2x4")
    assert fit.parts["kv_cache"] == 2 * GIB
    assert round(fit.parts["weights"] / GIB, 2) == 1.87


def test_70b_over_eight_chips_is_what_the_compiler_refuses_on_v5e() -> None:
    # "total memory required ... (21.43G) exceeds available HBM (15.75G)": weights 16.43, KV cache 5.0.
    fit = serving(LLAMA_70B, 64, 2048, "v5e", "2x4")
    assert round((fit.parts["weights"] + fit.parts["kv_cache"]) / GIB, 2) == 21.43
    assert not fit.holds


def test_kv_heads_are_repeated_where_there_are_fewer_than_shards() -> None:
    # 16 shards of 64 heads, 8 KV heads: each shard has one, so the cache of 16 chips is as large as that of 8. The keys
    # and values of 80 layers (8192 x 128 each) likewise: 1/8 of them, and 1/16 of all else.
    eight, sixteen = (serving(LLAMA_70B, 64, 2048, "v6e", topology) for topology in ("2x4", "4x4"))
    assert sixteen.parts["kv_cache"] == eight.parts["kv_cache"] == 5 * GIB
    norms, keys_and_values = 161 * 8192, 2 * 80 * 8192 * 8 * 128
    rest = 70_553_706_496 - norms - keys_and_values
    assert sixteen.parts["weights"] == 2 * (rest // 16 + keys_and_values // 8 + norms)


def test_what_heads_do_not_divide_is_whole_on_every_chip() -> None:
    # 9 heads over 16 chips: data 16, tensor 1; 134,515,008 weights on each, and one of 16 rows of the cache.
    fit = serving(SMOLLM, 4, 1024, "v6e", "4x4")
    assert fit.parts["weights"] == 2 * 134_515_008
    assert fit.parts["kv_cache"] == 2 * 30 * 1 * 1024 * 3 * 64 * 2


def test_a_long_context_takes_more_than_the_model() -> None:
    # KV: 2 x 32 x 16 slots x 131072 x 8 x 128 x 2 bytes = 256 GiB, over 8 chips 32 each: no v6e chip has that.
    fit = serving(LLAMA_8B, 16, 131072, "v6e", "2x4")
    assert fit.parts["kv_cache"] == 32 * GIB
    assert not fit.holds
    # 100 tokens are 100 positions, 129 are two blocks of 128.
    assert serving(LLAMA_8B, 1, 100, "v6e", "1x1").parts["kv_cache"] == 2 * 32 * 100 * 8 * 128 * 2
    assert serving(LLAMA_8B, 1, 129, "v6e", "1x1").parts["kv_cache"] == 2 * 32 * 256 * 8 * 128 * 2


def test_a_v7x_chip_holds_the_shares_of_its_two_devices() -> None:
    # 2 devices, tensor 2: each has half and the norms; 192 GiB of one chip.
    fit = serving(LLAMA_8B, 4, 1024, "v7x", "1x1x1")
    assert fit.parts["weights"] == 2 * 2 * ((8_030_261_248 - 266_240) // 2 + 266_240)
    assert fit.parts["kv_cache"] == 536_870_912
    assert fit.hbm == 192 * GIB


def test_training_8b_is_bound_by_the_optimizer_until_tensor_divides_it() -> None:
    # float32 weights, gradients and two moments: 16 bytes for each of 8,030,261,248, whatever the data axis.
    small = replace(LLAMA_8B, context=128)
    alone = training_fit(small, 16, 1, resolve_slice("v5p", "2x2x4"))
    assert (alone.parts["weights"], alone.parts["gradients"]) == (32_121_044_992, 32_121_044_992)
    assert alone.parts["optimizer"] == 64_242_089_984
    assert not alone.holds
    assert training_fit(small, 16, 16, resolve_slice("v5p", "2x2x4")).holds


def test_activations_by_hand() -> None:
    # A token of one row, on one device, bfloat16: 2 x 8 (norms' inputs), 2 x 8 (q, mixed), 2 x 4 (k, v), 2 x 24 (MLP),
    # 4 heads x 16 tokens; 3 layers of that, and 10 logits in float32. 2 rows of 16 tokens on each of 4 devices.
    tiny = LlamaConfig(10, 8, 3, 4, 2, 2, 24, 16)
    fit = training_fit(tiny, 8, 1, resolve_slice("v6e", "2x2"))
    assert fit.parts["activations"] == 2 * 16 * (3 * 2 * (16 + 16 + 8 + 48 + 64) + 10 * 4)


def test_a_mesh_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="tensor 3 does not divide 32 heads and 4 devices"):
        training_fit(LLAMA_8B, 16, 3, resolve_slice("v6e", "2x2"))


SHAPES = [shape for shape in catalogue() if shape.chips <= 512]


@st.composite
def models(draw: st.DrawFn) -> LlamaConfig:
    """Models whose vocabulary and MLP the number of their heads divides, as is usual."""
    kv_heads, group, head_dim = draw(st.integers(1, 16)), draw(st.integers(1, 8)), 2 * draw(st.integers(1, 64))
    heads = kv_heads * group
    return LlamaConfig(
        vocab=heads * draw(st.integers(1, 4000)),
        width=heads * head_dim,
        layers=draw(st.integers(1, 100)),
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        mlp_width=heads * draw(st.integers(1, 1000)),
        context=draw(st.integers(16, 8192)),
        tie_embeddings=draw(st.booleans()),
    )


calm = settings(deadline=None, max_examples=200)


@calm
@given(models(), st.integers(1, 256), st.integers(16, 131072), st.sampled_from(SHAPES), st.sampled_from(SHAPES))
def test_more_chips_that_they_divide_never_need_more_of_each(
    config: LlamaConfig, slots: int, context: int, one: Slice, other: Slice
) -> None:
    few, many = sorted((one, other), key=lambda shape: shape.devices)
    if few.generation != many.generation or many.devices % few.devices:
        return
    before, after = (serving_fit(config, slots, context, shape) for shape in (few, many))
    assert all(after.parts[part] <= before.parts[part] for part in before.parts)
    assert after.needed <= before.needed


@calm
@given(models(), st.integers(1, 64), st.sampled_from(SHAPES))
def test_a_larger_tensor_degree_never_needs_more_for_the_state(config: LlamaConfig, rows: int, shape: Slice) -> None:
    degrees = tensor_degrees(config, shape)
    fits = [training_fit(config, rows * 512, degree, shape) for degree in degrees]
    for degree, fit in zip(degrees, fits, strict=True):
        for other, wider in zip(degrees, fits, strict=True):
            # A degree that the KV heads do not take has all of them on every device.
            if other % degree == 0 and config.kv_heads % other == 0:
                assert wider.parts["weights"] <= fit.parts["weights"]
                assert wider.parts["optimizer"] == 2 * wider.parts["gradients"] == 2 * wider.parts["weights"]


@calm
@given(models(), st.integers(1, 256), st.integers(16, 131072))
def test_the_smallest_slices_hold_it_and_none_that_is_smaller_does(
    config: LlamaConfig, slots: int, context: int
) -> None:
    def holds(shape: Slice) -> bool:
        return serving_fit(config, slots, context, shape).holds

    named = {shape.generation: shape for shape in smallest(holds)}
    for shape in SHAPES:
        if shape.ray_accepts and (shape.generation not in named or shape.chips < named[shape.generation].chips):
            assert not holds(shape)
    for shape in named.values():
        assert holds(shape)
        assert shape.ray_accepts


@calm
@given(models(), st.integers(1, 256), st.integers(16, 131072), st.sampled_from(SHAPES))
def test_the_parts_and_the_percentage_say_the_same(config: LlamaConfig, slots: int, context: int, shape: Slice) -> None:
    fit = serving_fit(config, slots, context, shape)
    assert fit.needed == sum(fit.parts.values()) + fit.margin
    assert fit.margin * MARGIN - fit.hbm in range(MARGIN)
    if fit.holds:
        assert fit.percent <= 95
    assert mesh_shape(shape.devices, config.heads)[1] in tensor_degrees(config, shape)
