"""`python -m workloads.train JSON`: run one job, described by a JobLaunch, on the Ray cluster of this process."""

import sys

from pydantic import ValidationError

from workloads.spec.launch import JobLaunch
from workloads.train.driver import BAD_JOB, run, say


def main(arguments: list[str]) -> int:
    """Gives the exit code: 0 finished, 1 failed, 2 the job can never work as written."""
    if len(arguments) != 1:
        say("usage: python -m workloads.train JSON  (a workloads.spec.launch.JobLaunch)")
        return BAD_JOB
    try:
        launch = JobLaunch.model_validate_json(arguments[0])
    except ValidationError as error:
        for mistake in error.errors():
            key = ".".join(str(part) for part in mistake["loc"]) or "the argument"
            say(f"error: {key}: {mistake['input']!r}: {mistake['msg']}")
        return BAD_JOB
    return run(launch)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
