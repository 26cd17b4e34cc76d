"""The stack file: what it may say, and everything that is wrong with one, at once."""

from infra.stack.gke import ClusterSpec, CpuNodes, GkePlatform, NetworkSpec
from infra.stack.model import Capacity, LocalPlatform, Platform, PoolSpec, SliceCount, StackSpec
from infra.stack.parse import parse_pool, parse_stack
from infra.stack.problems import Problem, StackError
from infra.stack.ray import GcsFaultTolerance, RaySpec
from infra.stack.read import load_stack, read_stack_file

__all__ = [
    "Capacity",
    "ClusterSpec",
    "CpuNodes",
    "GcsFaultTolerance",
    "GkePlatform",
    "LocalPlatform",
    "NetworkSpec",
    "Platform",
    "PoolSpec",
    "Problem",
    "RaySpec",
    "SliceCount",
    "StackError",
    "StackSpec",
    "load_stack",
    "parse_pool",
    "parse_stack",
    "read_stack_file",
]
