"""`python -m tests.rig.gcp`: started by the engine as `pulumi-resource-gcp`."""

import os
import sys
from pathlib import Path

from tests.rig.cloud.cloud import Cloud
from tests.rig.cloud.refused import Refused, RefusedPartially
from tests.rig.gcp.server import Refusals, serve


def main() -> None:
    """Serve until the engine ends the process; its first line on stdout is the port."""
    folder = os.environ.get("TPU_RAY_RIG_CLOUD")
    if not folder:
        sys.exit("TPU_RAY_RIG_CLOUD is not set: wanted the folder of the stand-in for Google Cloud")
    server, port = serve(Cloud(Path(folder)), Refusals(Refused, RefusedPartially))
    print(port, flush=True)
    server.wait_for_termination()


main()
