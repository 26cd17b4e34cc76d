"""A secret of the stack file is read by its pod alone: it is in no output, no state, no file and no log."""

import base64
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from infra.pulumi_cli.locate import cache_dir
from tests.checkout import DEADLINE_S
from tests.rig.cloud.settings import Quota, read_settings, write_settings
from tests.rig.gke import GkeCheckout
from tests.rig.kube.kuberay import operated

pytestmark = [
    pytest.mark.rig,
    # The SDK warns about its own old names when it is loaded.
    pytest.mark.filterwarnings("ignore:gcp\\.:DeprecationWarning"),
]

NONE = Quota(generation="v6e", region="us-east5", chips=0, preemptible=0)
KEY = "tpu-ray:hubToken"


def forms(secret: str) -> set[bytes]:
    """How a text may be written down: as it is, as in an address, or in base64 behind any number of bytes."""
    found = {secret.encode(), quote(secret, safe="").encode()}
    for before in range(3):
        coded = base64.b64encode(b"x" * before + secret.encode())
        # The first and the last group of four hold other bytes too.
        found.add(coded[4:-4] if before else coded[:-4])
    return found


class Watched:
    """A stack of a user whose every file is below one folder, and everything that its commands ever printed."""

    def __init__(self, folder: Path, stack: GkeCheckout) -> None:
        self.folder, self.stack = folder, stack
        self.secrets: list[str] = []
        for name in ("HOME", "TMPDIR"):
            (folder / name.lower()).mkdir(exist_ok=True)
            stack.environment[name] = str(folder / name.lower())
        stack.environment["TPU_RAY_CACHE"] = str(cache_dir())

    def plant(self) -> str:
        """Store a new token, as a user does; the file's text does not tell it."""
        token = f"hf_{secrets.token_hex(20)}"
        self.secrets.append(token)
        self.run(f"pulumi config set --secret {KEY} -s {self.stack.stack} --non-interactive <<< {token}")
        assert f"{KEY}:\n    secure: v1:" in self.stack.stack_file.read_text()
        return token

    def run(self, command: str, expect: int = 0) -> str:
        """Both streams of a command in the user's shell; it tells no secret, and leaves none in a file."""
        done = subprocess.run(
            ["bash", "-c", f'eval "$(tpu-ray env -s {self.stack.stack})" && {{ {command}\n}} 2>&1'],
            cwd=self.stack.root,
            env=self.stack.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        )
        self.assert_hidden(done.stdout.encode() + done.stderr.encode(), command)
        assert done.returncode == expect, f"{command} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
        self.assert_no_file_tells()
        return done.stdout

    def assert_hidden(self, content: bytes, where: object) -> None:
        for secret in self.secrets:
            for form in forms(secret):
                assert form not in content, f"{where} tells a secret"

    def assert_no_file_tells(self) -> None:
        """Only the API server's own store may: that is where the pods have it from."""
        store = self.folder / "plane" / "etcd"
        looked_at = 0
        for file in self.folder.rglob("*"):
            if file.is_file() and not file.is_symlink() and not file.is_relative_to(store):
                self.assert_hidden(file.read_bytes(), file)
                looked_at += 1
        assert looked_at > 10

    def with_quotas(self, *quotas: Quota) -> None:
        """What Google allows from now on."""
        folder = self.stack.cloud_folder
        write_settings(folder, read_settings(folder).model_copy(update={"quotas": quotas}))

    def in_cluster(self) -> str:
        """The token that pods get."""
        namespace = self.stack.platform["namespace"]
        with self.stack.plane.client() as client:
            found = client.get(f"/api/v1/namespaces/{namespace}/secrets/tpu-ray-hub").raise_for_status().json()
        return base64.b64decode(found["data"]["token"]).decode()


@pytest.fixture
def user(tmp_path: Path) -> Iterator[Watched]:
    with operated(tmp_path / "plane") as plane:
        yield Watched(tmp_path, GkeCheckout(tmp_path, "dev", plane))


def test_a_secret_is_only_where_the_pods_read_it(user: Watched) -> None:
    """Logged in nowhere, so that the state is tpu-ray's own folder; through `tpu-ray` and through plain `pulumi`."""
    user.run("tpu-ray preview -s dev")  # It makes the stack, which a secret is stored for.
    first = user.plant()
    assert "Secret workspace-hub" in user.run("tpu-ray preview -s dev")

    user.with_quotas(NONE)
    assert "Insufficient regional quota" in user.run("tpu-ray up -s dev", expect=1)
    user.with_quotas()
    user.run("tpu-ray up -s dev --json")
    assert user.in_cluster() == first
    for command in ("stack export", "stack", "stack output --json", "stack history --json", "config --json"):
        user.run(f"pulumi {command} -s dev")
    user.run("tpu-ray check stacks/Pulumi.dev.yaml --json")
    user.run("tpu-ray plan -s dev --json")

    second = user.plant()
    plain = "-s dev --non-interactive --config-file $TPU_RAY_STACK_FILE"
    assert "[secret]" in user.run(f"pulumi preview --diff {plain}")
    user.run(f"pulumi preview --json {plain}")
    user.run(f"pulumi up --yes --diff {plain}")
    assert user.in_cluster() == second
    user.run("tpu-ray refresh -s dev && tpu-ray preview -s dev --expect-no-changes")
    user.run("pulumi stack export -s dev")
    with pytest.raises(AssertionError, match="tells a secret"):
        user.run("pulumi stack export -s dev --show-secrets")
    user.run("tpu-ray destroy -s dev --json")


def test_a_secret_in_a_state_of_the_users_own_is_hidden_too(user: Watched) -> None:
    """As a team has it: a backend that the user is logged in to, and the key of its secrets."""
    backend = user.folder / "team"
    backend.mkdir()
    passphrase = secrets.token_hex(16)
    user.secrets.append(passphrase)
    user.stack.environment |= {"PULUMI_BACKEND_URL": f"file://{backend}", "PULUMI_CONFIG_PASSPHRASE": passphrase}
    user.run("pulumi stack init dev")
    token = user.plant()
    assert "Secret workspace-hub" in user.run("tpu-ray preview -s dev --json")
    user.run("tpu-ray up -s dev")
    assert user.in_cluster() == token
    user.run("pulumi preview --diff -s dev --non-interactive")
    user.run("pulumi stack export -s dev")
    user.run("tpu-ray destroy -s dev")


def test_a_secret_of_another_machine_is_told_with_what_to_do(user: Watched) -> None:
    """Logged in nowhere, with a stack file that somebody else has put a secret into."""
    user.run("tpu-ray preview -s dev")
    before = user.stack.stack_file.read_text()
    user.plant()
    foreign = user.stack.stack_file.read_text()
    user.stack.home.rename(user.folder / "elsewhere")

    def assert_told(operation: str) -> None:
        said = user.run(f"tpu-ray {operation} -s dev", expect=1)
        assert f"{user.stack.stack_file}: {KEY} cannot be read here" in said
        assert f"take {KEY} and the line encryptionsalt out of the file" in said

    assert_told("preview")  # The stack is not there yet.
    user.stack.stack_file.write_text(before)
    user.run("tpu-ray preview -s dev")
    user.stack.stack_file.write_text(foreign)
    assert_told("up")  # It is there, with a passphrase of its own.
    user.stack.stack_file.write_text(before)
    user.plant()
    user.run("tpu-ray preview -s dev")
