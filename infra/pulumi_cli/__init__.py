"""The Pulumi command line tool: found, installed or built, and the backend it writes to when nobody is logged in."""

from infra.pulumi_cli.backend import Backend, choose_backend
from infra.pulumi_cli.locate import CliNotFound, PulumiCli, cache_dir, find_cli
from infra.pulumi_cli.obtain import obtain_cli

__all__ = ["Backend", "CliNotFound", "PulumiCli", "cache_dir", "choose_backend", "find_cli", "obtain_cli"]
