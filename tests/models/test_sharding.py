"""The mesh rule and the layout of parameters."""

import jax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models import toy
from workloads.models.sharding import make_mesh, mesh_shape, parameter_specs, replicated_kv_heads
from workloads.spec.decoder import LlamaConfig, parameter_shapes


@pytest.mark.parametrize(
    ("devices", "heads", "shape"), [(1, 9, (1, 1)), (16, 8, (2, 8)), (16, 9, (16, 1)), (4, 32, (1, 4)), (6, 9, (2, 3))]
)
def test_mesh_rule(devices: int, heads: int, shape: tuple[int, int]) -> None:
    assert mesh_shape(devices, heads) == shape


@settings(deadline=None)
@given(devices=st.integers(1, 512), kv_heads=st.integers(1, 16), group=st.integers(1, 16))
def test_every_shard_has_whole_heads_and_their_kv_heads(devices: int, kv_heads: int, group: int) -> None:
    heads = kv_heads * group
    data, tensor = mesh_shape(devices, heads)
    assert data * tensor == devices
    assert heads % tensor == 0
    config = LlamaConfig(8, 8, 1, heads, kv_heads, 2, 8, 8)
    repeated = replicated_kv_heads(config, tensor)
    assert repeated % tensor == 0
    assert heads % repeated == 0
    assert repeated % kv_heads == 0


def test_every_parameter_has_a_spec_of_its_rank() -> None:
    specs = parameter_specs(toy.CONFIG, make_mesh(jax.devices()[:1], 1, 1))
    assert {name: len(spec) for name, spec in specs.items()} == {
        name: len(shape) for name, shape in parameter_shapes(toy.CONFIG).items()
    }
    assert [name for name, spec in specs.items() if "tensor" not in spec] == ["attn_norm", "mlp_norm", "final_norm"]
