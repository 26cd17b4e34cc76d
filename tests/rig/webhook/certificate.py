"""A certificate that signs itself, for a server at one IP address."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

SETTINGS = """\
[req]
prompt = no
distinguished_name = name
x509_extensions = extensions
[name]
CN = ray-tpu-webhook
[extensions]
basicConstraints = critical,CA:TRUE
keyUsage = critical,digitalSignature,keyCertSign
extendedKeyUsage = serverAuth
subjectKeyIdentifier = hash
subjectAltName = IP:{address}
"""


@dataclass(frozen=True)
class Certificate:
    """Files in PEM; the certificate is its own authority."""

    file: Path
    key: Path


def make_certificate(folder: Path, address: str) -> Certificate:
    """Make it in the folder; it is good for two days."""
    openssl = shutil.which("openssl")
    assert openssl, "the webhook of the test rig speaks TLS, and there is no `openssl` on PATH"
    made, settings = Certificate(folder / "webhook.crt", folder / "webhook.key"), folder / "webhook.cnf"
    settings.write_text(SETTINGS.format(address=address))
    command: list[str | Path] = [openssl, "req", "-x509", "-nodes", "-days", "2", "-config", settings]
    command += ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-out", made.file, "-keyout", made.key]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    return made
