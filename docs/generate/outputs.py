"""Run the README's commands and put what they really print into its marked blocks.

A block stands between `<!-- output: COMMAND -->` and `<!-- /output -->`; `result:` instead of `output:` leaves the
progress on the error stream out. Commands run in the order of the page, from
the checkout's root, the first that fails ends the run and leaves the page as it was.

Run: `python docs/generate/outputs.py README.md [--only TEXT]` (brings the local stack up: minutes).
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"<!-- (?P<kind>output|result): (?P<command>.+?) -->\n.*?<!-- /output -->", re.DOTALL)
DEADLINE_S = 3600


def shown(text: str) -> str:
    """Output as a page shows it: no trailing blanks, the home folder as `~`, the checkout as `.`."""
    text = text.replace(str(ROOT), ".").replace(str(Path.home()), "~")
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")


def run(command: str, with_errors: bool) -> str:
    """Standard output of a command, and its error stream too if wanted. Raises CalledProcessError when it fails."""
    errors = subprocess.STDOUT if with_errors else None
    done = subprocess.run(
        ["sh", "-c", command], cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True, timeout=DEADLINE_S
    )
    if done.returncode:
        sys.stderr.write(done.stdout)
        raise subprocess.CalledProcessError(done.returncode, command)
    return done.stdout


def main() -> int:
    """Rewrite the page's blocks; those whose command lacks `--only`'s text stay as they are."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("page", type=Path)
    arguments.add_argument("--only", default="", help="only the blocks whose command holds this text")
    options = arguments.parse_args()
    page: Path = options.page

    def refreshed(match: re.Match[str]) -> str:
        command = match["command"]
        if options.only not in command:
            return match[0]
        print(f"running: {command}", file=sys.stderr)
        text = shown(run(command, with_errors=match["kind"] == "output"))
        return f"<!-- {match['kind']}: {command} -->\n```console\n$ {command}\n{text}\n```\n<!-- /output -->"

    page.write_text(BLOCK.sub(refreshed, page.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
