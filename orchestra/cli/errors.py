"""What ends the command with one line on stderr."""


class CommandError(Exception):
    """Told to the user as one line, without a traceback; `status` is the exit status."""

    def __init__(self, text: str, status: int = 2) -> None:
        super().__init__(" ".join(text.split()))
        self.status = status
