"""Run as `python -m infra.pulumi_cli.installer ROOT VERSION`: the official installer, in a process that can be ended.

The SDK's download has no timeout of its own, so the sockets get one here and the caller bounds the whole process.
"""

import socket
import sys
from pathlib import Path

CONNECT_TIMEOUT_S = 15.0


def main(root: str, version: str) -> int:
    """Install into `root`; prints one line and returns 1 when that fails."""
    import semver
    from pulumi.automation import PulumiCommand

    socket.setdefaulttimeout(CONNECT_TIMEOUT_S)
    try:
        PulumiCommand.install(root=root, version=semver.VersionInfo.parse(version))
    except Exception as error:  # whatever fails, the caller goes on to the next way and shows this line
        output = getattr(error, "output", None)
        last = output.decode(errors="replace").strip().splitlines()[-1:] if isinstance(output, bytes) else []
        print(" ".join([str(error), *last]), file=sys.stderr)
        return 1
    return 0 if (Path(root) / "bin" / "pulumi").exists() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
