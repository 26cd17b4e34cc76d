"""Single values of a stack file: how YAML's words and numbers are read, and which images are taken."""

import re
from math import inf
from pathlib import Path
from typing import cast

import pytest

from infra.stack import forms, read_stack_file


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("3e-3", 0.003),
        ("1E2", 100.0),
        (".5", 0.5),
        ("2", 2),
        ("-1", -1),
        ("no", "no"),
        ("on", "on"),
        ("0x4", "0x4"),
        ("0123", "0123"),
        ("1:30", "1:30"),
        ("2020-01-01", "2020-01-01"),
        ("true", True),
        ("~", None),
        ("1_000", 1000),
        ("0", 0),
        ("-.inf", -inf),
        ("e5", "e5"),
        (".", "."),
    ],
)
def test_yaml_is_read_as_pulumi_reads_it_and_numbers_with_a_base_stay_text(
    tmp_path: Path, written: str, read: object
) -> None:
    file = tmp_path / "Pulumi.x.yaml"
    file.write_text(f"config:\n  tpu-ray:x: [{written}]\n")
    (found,) = cast("list[object]", read_stack_file(file)["tpu-ray:x"])
    assert (type(found), found) == (type(read), read)


@pytest.mark.parametrize(
    "image",
    [
        "ubuntu",
        "localhost:5000/a/b:1",
        "us-east5-docker.pkg.dev/p-1/tpu-ray/w__x:0.1.0",
        "ghcr.io/a@sha256:" + "0" * 64,
    ],
)
def test_images_of_every_form_are_taken(image: str) -> None:
    assert re.fullmatch(forms.IMAGE, image)
