"""The stack file: what it may say, and everything that is wrong with one, at once."""

from infra.stack.model import GkePlatform, LocalPlatform, Platform, PoolSpec, SliceCount, StackSpec
from infra.stack.parse import parse_stack
from infra.stack.problems import Problem, StackError
from infra.stack.read import load_stack, read_stack_file

__all__ = [
    "GkePlatform",
    "LocalPlatform",
    "Platform",
    "PoolSpec",
    "Problem",
    "SliceCount",
    "StackError",
    "StackSpec",
    "load_stack",
    "parse_stack",
    "read_stack_file",
]
