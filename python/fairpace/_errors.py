"""The package's exceptions: the command's errors, in its words, the remedy as a note."""


class FairpaceError(Exception):
    """Whatever Fairpace refuses. `hint` says what to do, or is None."""

    hint: str | None = None


class ScenarioError(FairpaceError, ValueError):
    """A scenario, or a change to one, that is wrong: file, line, field, what was found, what is allowed."""


class RunError(FairpaceError, RuntimeError):
    """Work that came to nothing."""


class FolderError(RunError):
    """A folder that holds results which would be lost."""


class ForeignFolderError(FolderError):
    """A folder that holds something else than results: `force` does not replace it."""


class Interrupted(RunError):
    """Stopped before the first result."""
