"""The command line of the slow subscriber."""

import asyncio
import contextlib
from typing import Annotated

from examples import needs

with needs("cli"):
    from cyclopts import App, Parameter, validators
    from rich.console import Console

    from examples.slow_subscriber.app import compare
    from examples.slow_subscriber.screen import screen_for, table_of

app = App(name="python -m examples.slow_subscriber", help="One slow subscriber under three policies.")

Positive = Parameter(validator=validators.Number(gt=0))


@app.default
def main(*, seconds: Annotated[float, Positive] = 10.0, rate: Annotated[float, Positive] = 500.0) -> None:
    """Publish to a fast and a slow subscriber, and show what each gets. Stop early with Ctrl-C.

    Parameters
    ----------
    seconds
        How long it runs.
    rate
        How many samples are published a second.
    """
    progress = Console(stderr=True)
    interval = 0.25 if progress.is_terminal else 1.0
    with contextlib.suppress(KeyboardInterrupt):
        with screen_for(progress) as screen:
            last = asyncio.run(compare(seconds, rate, screen.show, interval))
        Console().print(table_of(seconds, last))


if __name__ == "__main__":
    app()
