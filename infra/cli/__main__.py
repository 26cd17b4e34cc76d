"""`python -m infra.cli` is `tpu-ray`."""

from infra.cli.commands import main

main()
