"""The Pulumi program. `pulumi up` runs this folder; the Automation API calls the same function."""

from infra.program import deploy

deploy()
