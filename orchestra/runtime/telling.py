"""Telling of errors whose own methods may fail: what is said of a failure must not become another one."""


def told(error: BaseException) -> str:
    """The type and text of an error, or its type alone where the text cannot be had."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return f"{type(error).__name__} (its text cannot be shown)"


def note(error: BaseException, text: str) -> None:
    """Add a note to an error, past what its class makes of `add_note`."""
    BaseException.add_note(error, text)
