"""A mistake in a job's own keys, found before a slice is reserved."""


class JobProblem(ValueError):
    """A value of the job that cannot work.

    `key` is the key below the job as the user wrote it (`data.global_batch`), `value` what was written, `reason` one
    sentence with the numbers, `nearest` the closest value that works (None where there is none).
    """

    def __init__(self, key: str, value: object, reason: str, nearest: object = None) -> None:
        hint = "" if nearest is None else f"; nearest that works: {nearest}"
        super().__init__(f"{key}: {value!r}: {reason}{hint}")
        self.key, self.value, self.reason, self.nearest = key, value, reason, nearest
