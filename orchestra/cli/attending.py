"""Commands that go on until they are interrupted, and the session that they hold meanwhile."""

import asyncio
import contextlib
import sys
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial

from orchestra.cli.errors import CommandError
from orchestra.errors import LinkError
from orchestra.interrupts import interrupts
from orchestra.link import ZenohLink
from orchestra.link.session import Session

CLOSING = 5.0
"""Seconds that the close of a session may take."""

SOON = 1.0
"""Seconds without a connection until that is told."""

Body = Callable[[asyncio.Event], Awaitable[int]]


def attended(body: Body) -> int:
    """Run `body` until it returns the exit status.

    The first SIGINT or SIGTERM sets the event that it is given; the second ends the process at once.
    """

    async def main(asked: asyncio.Event) -> int:
        return await body(asked)

    asked = asyncio.Event()
    with asyncio.Runner() as runner:
        with interrupts(runner.get_loop(), asked.set, CLOSING):
            return runner.run(main(asked))


@contextlib.asynccontextmanager
async def session(link: ZenohLink, asked: asyncio.Event) -> AsyncGenerator[Session, None]:
    """A session that is closed at the end. CommandError of status 1 when it cannot be opened."""
    given_up = threading.Event()
    opening = asyncio.ensure_future(asyncio.to_thread(Session.open, link, given_up))
    interrupted = asyncio.ensure_future(asked.wait())
    either = partial(asyncio.wait, [opening, interrupted], return_when=asyncio.FIRST_COMPLETED)
    done, _ = await either(timeout=SOON)
    if not done:
        if not link.listen:
            where = ", ".join(link.connect)
            print(
                f"orchestra: nobody answers yet at {where}; trying for {link.patience:g} s", file=sys.stderr
            )
        await either()
    interrupted.cancel()
    if not opening.done():
        given_up.set()
        with contextlib.suppress(LinkError):
            (await opening).close(CLOSING)
        raise CommandError("interrupted before there was a connection", status=1)
    try:
        found = opening.result()
    except LinkError as error:
        raise CommandError(str(error), status=1) from None
    try:
        yield found
    finally:
        await asyncio.to_thread(found.close, CLOSING)
