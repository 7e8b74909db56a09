"""Programs that show `orchestra` in use. Run each from the root of the project: `python -m examples.duo`."""

import sys
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def needs(extras: str) -> Generator[None]:
    """Around imports: when one of them is not installed, end the program and say how to get it."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        sys.exit(f"this example needs the package {package!r}: in the checkout, pip install '.[{extras}]'")
