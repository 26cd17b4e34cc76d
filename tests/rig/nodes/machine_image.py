"""One image for every tag: empty folders and the machine's own file system mounted over them, read-only.

No registry is asked and nothing is unpacked: the programs of a pod (Python, Ray, JAX, redis-server) are those that are
installed here. What a tag would bring in the cloud is the business of the checks of images, not of this one.
"""

import hashlib
import io
import json
import os
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

from tests.checkout import ROOT
from tests.rig.kube.parts import pause
from tests.rig.nodes.chips import CHIPS
from workloads.spec.versions import LOCKED

OF_THE_IMAGE = "opt/of-the-image"
"""Python packages that the image has and this machine has not."""
ETC = ("etc/ssl", "etc/alternatives")
FOLDERS = ("usr", "etc", *ETC, "proc", "sys", "dev", "run", "var", "root", "home/ray", "mnt", "opt")
BESIDE_USR = ("bin", "sbin", "lib", "lib64")
"""Links into `/usr`, where the machine has merged them: https://wiki.debian.org/UsrMerge."""
USERS = "root:x:0:0:root:/root:/bin/bash\nray:x:1000:100::/home/ray:/bin/bash\nnobody:x:65534:65534::/:/bin/false\n"
GROUPS = "root:x:0:\nusers:x:100:\nnogroup:x:65534:\n"
PAUSE = "tpu-ray.test/pause:1"


def mounts() -> list[dict[str, object]]:
    """What a container has of this machine, as an OCI runtime writes it down."""
    beside = [f"/{one}" for one in BESIDE_USR if not Path(f"/{one}").is_symlink()]
    shown = [
        "/usr",
        *beside,
        *(f"/{one}" for one in ETC),
        "/etc/ld.so.cache",
        sys.base_prefix,
        sys.prefix,
        str(ROOT),
    ]
    # A virtual environment may be a link from several checkouts; Python starts from where it really is.
    real = [os.path.realpath(one) for one in (sys.base_prefix, sys.prefix)]
    return [
        {"destination": path, "type": "bind", "source": path, "options": ["rbind", "ro"]}
        for path in dict.fromkeys([*shown, *real])
    ]


def write_image(file: Path, tags: Sequence[str]) -> None:
    """Write an archive as `docker save` does, with all tags for the one image.

    https://github.com/opencontainers/image-spec/blob/main/config.md
    """
    layer = _layer()
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {
            "Env": _env(),
            "Entrypoint": ["/pause"],
            "WorkingDir": "/home/ray",
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }
    written = json.dumps(config).encode()
    name = f"{hashlib.sha256(written).hexdigest()}.json"
    manifest = [{"Config": name, "RepoTags": list(tags), "Layers": ["layer.tar"]}]
    with tarfile.open(file, "w") as archive:
        for path, content in ((name, written), ("layer.tar", layer), ("manifest.json", json.dumps(manifest).encode())):
            _add(archive, path, content)


def _env() -> list[str]:
    path = f"{Path(sys.prefix) / 'bin'}:/usr/local/bin:/usr/bin:/bin"
    return [f"PATH={path}", "HOME=/home/ray", f"PYTHONPATH={CHIPS}:/{OF_THE_IMAGE}:{ROOT}"]


def _layer() -> bytes:
    found = io.BytesIO()
    with tarfile.open(fileobj=found, mode="w") as archive:
        for folder in (*FOLDERS, "tmp"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if folder in ("tmp", "home/ray") else 0o755
            archive.addfile(entry)
        for name in BESIDE_USR:
            entry, path = tarfile.TarInfo(name), Path(f"/{name}")
            if path.is_symlink():
                entry.type, entry.linkname = tarfile.SYMTYPE, str(path.readlink())
            else:
                entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(entry)
        # The container that holds a pod's network open gets none of the mounts.
        _add(archive, "pause", pause().read_bytes(), 0o755)
        # Where there are no chips its library is never loaded; that the image has the right one is looked at.
        driver = f"Metadata-Version: 2.1\nName: libtpu\nVersion: {LOCKED.libtpu}\n"
        _add(archive, f"{OF_THE_IMAGE}/libtpu-{LOCKED.libtpu}.dist-info/METADATA", driver.encode())
        _add(archive, "etc/passwd", USERS.encode())
        _add(archive, "etc/group", GROUPS.encode())
        _add(archive, "etc/nsswitch.conf", b"hosts: files dns\n")
    return found.getvalue()


def _add(archive: tarfile.TarFile, path: str, content: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(path)
    entry.size = len(content)
    entry.mode = mode
    archive.addfile(entry, io.BytesIO(content))
