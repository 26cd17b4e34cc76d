"""The components for programs in other languages: `pulumi package add <checkout>/plugin`."""

from importlib.metadata import version

from pulumi.provider.experimental import component_provider_host

from infra.components import Network, NodeAccount, SlicePool

if __name__ == "__main__":
    component_provider_host([Network, NodeAccount, SlicePool], name="tpu-ray", version=version("tpu-ray"))
