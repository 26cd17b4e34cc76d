"""The one error of the platforms: what was wanted, what was found, what to do next."""


class PlatformError(Exception):
    """Something a platform could not do. `str()` of it is the text a user sees, without a traceback.

    `key` is the stack file's key that decides about it, where there is one.
    """

    def __init__(self, problem: str, *, wanted: str = "", found: str = "", next_step: str = "", key: str = "") -> None:
        self.problem, self.wanted, self.found, self.next_step, self.key = problem, wanted, found, next_step, key
        lines = [f"{key}: {problem}" if key else problem]
        lines += [f"  wanted: {wanted}"] if wanted else []
        lines += [f"  found:  {found}"] if found else []
        lines += [f"  next:   {next_step}"] if next_step else []
        super().__init__("\n".join(lines))
