"""Waiting side by side for the tickets of one message, one for each lane that had no room."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from orchestra.errors import Closed
from orchestra.runtime.lane import Lane
from orchestra.runtime.ticket import StrandTicket, Ticket

Note: TypeAlias = Callable[[Lane, Ticket | bool], None]
"""What is told of each lane whether it took the message, or that the message waits there."""

Waits: TypeAlias = Sequence[tuple[Lane, Ticket, Any]]


async def redeem_all(waits: Waits, message: Any, note: Note) -> Sequence[bool | BaseException]:
    """Wait for all the tickets; a lane that is closed meanwhile gives its `Closed`.

    Cancelling withdraws the message wherever it still waits. A place that is granted is used at once, however
    long others take.
    """
    if len(waits) <= 1:
        return [await _redeem(lane, ticket, entry, message, note) for lane, ticket, entry in waits]
    parked = [(lane, ticket, entry) for lane, ticket, entry in waits if isinstance(ticket, StrandTicket)]
    if len(parked) == len(waits):
        return await _redeem_in_strand(parked, message, note)
    try:
        redeemed = [_redeem(lane, ticket, entry, message, note) for lane, ticket, entry in waits]
        return await asyncio.gather(*redeemed, return_exceptions=True)
    except BaseException:
        for lane, ticket, _ in waits:
            lane.withdraw(ticket)  # one whose Task had not begun to wait knows nothing of the cancelling
        raise


async def _redeem(lane: Lane, ticket: Ticket, entry: Any, message: Any, note: Note) -> bool | Closed:
    try:
        taken = await lane.redeem(ticket, entry, message)
    except Closed as closed:
        return closed
    note(lane, taken)
    return taken


async def _redeem_in_strand(
    waits: Sequence[tuple[Lane, StrandTicket, Any]], message: Any, note: Note
) -> list[bool | BaseException]:
    """The same within one strand, which parks until there is news of any ticket."""
    results: dict[Lane, bool | BaseException] = {}
    try:
        while True:
            for lane, ticket, entry in waits:
                if lane not in results:
                    _claim(lane, ticket, entry, message, note, results)
            if len(results) == len(waits):
                return [results[lane] for lane, _, _ in waits]
            if not any(ticket.woken for lane, ticket, _ in waits if lane not in results):
                await waits[0][1].strand.rest()
    except BaseException:
        for lane, ticket, _ in waits:
            if lane not in results:
                lane.abandon(ticket)
        raise
    finally:
        results.clear()  # an error in it refers to this frame


def _claim(
    lane: Lane,
    ticket: StrandTicket,
    entry: Any,
    message: Any,
    note: Note,
    results: dict[Lane, bool | BaseException],
) -> None:
    try:
        taken = lane.claim(ticket, entry, message)
    except Closed as closed:
        results[lane] = closed
        return
    if taken is not None:
        results[lane] = taken
        note(lane, taken)
