"""Room in a lane, lent to senders in other processes: pure, without a clock, a loop or a wire.

All numbers are counts since the beginning: a sender's message has the number of those before it, and its
`limit` is how many it may have sent. So a grant that is repeated, late or lost does no harm. Places that were
granted and are not used are kept free in the lane, so what is queued and what was granted never come to more
than its capacity.

To get places back the granter asks for a lower limit in a new round. The sender answers with the limit it
keeps, never below what it has sent, and from then on believes only grants of that round.
"""

import hashlib
from collections.abc import Iterable
from typing import Any

import attrs


@attrs.define(eq=False)
class Account:
    """What one sender was granted in one lane.

    `wants` says that it has more than it may send, `likely` that its process is declared to send at all,
    `idle` that it gave back what it had not used: it is granted a place when it wants one again.
    """

    limit: int = 0
    arrived: int = 0
    round: int = 0
    asked_back: int | None = None
    wants: bool = False
    likely: bool = True
    idle: bool = False
    turn: int = 0
    idle_at: int = -1
    """The number that had arrived when somebody last starved."""
    returning: bool = False
    """It was gone, and has not said yet how much it has sent: it may use nothing."""

    @property
    def unused(self) -> int:
        """How many places are kept free for it."""
        return self.limit - self.arrived

    @property
    def active(self) -> bool:
        """Whether it has a share of the places."""
        return self.wants or not self.idle

    @property
    def rank(self) -> tuple[bool, bool, int]:
        """Who is first to be granted a place: who wants one, then who may, and who has waited longest."""
        return not self.wants, not self.likely, self.turn


class Granter:
    """The receiver's side of one lane: it divides the places among the senders."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.accounts: dict[int, Account] = {}
        self.reserved = 0
        self._gone: dict[int, Account] = {}
        self._turn = 0

    def join(self, who: int, *, likely: bool = True) -> Account:
        """A sender is there, for the first time or again; `likely` is for the first time.

        One that comes again may still believe that it has room, so it is first asked to give that back.
        """
        if who in self._gone:
            account = self.accounts[who] = self._gone.pop(who)
            account.round += 1
            account.asked_back = account.arrived
            account.returning = True
            return account
        return self.accounts.setdefault(who, Account(likely=likely))

    def leave(self, who: int) -> None:
        """A sender is gone, and may come again: the places that it did not use are free."""
        account = self.accounts.pop(who, None)
        if account is not None:
            self.reserved -= account.unused
            account.limit = account.arrived
            account.wants = False
            self._gone[who] = account

    def arrive(self, who: int, upto: int) -> None:
        """So many messages of this sender have come, or were lost: they hold no place of its own any more."""
        account = self.accounts[who]
        if account.returning:
            account.limit = account.arrived = max(account.arrived, upto)
            return
        upto = min(upto, account.limit)
        if upto > account.arrived:
            self.reserved -= upto - account.arrived
            account.arrived = upto

    def share(self, local: bool = False) -> int:
        """How many places each of those who send may have, those in this process counted as one."""
        active = sum(account.active for account in self.accounts.values())
        return max(1, self.capacity // max(1, active + local))

    def grant(self, queued: int, *, local: bool = False) -> list[int]:
        """Grant what is free, `queued` being in the lane; the senders whose limit has risen are to be told.

        A sender is granted half of its share at once, or more: a grant for each message would cost as much as
        the message.
        """
        share = self.share(local)
        least = max(1, share // 2)
        free = self.capacity - queued - self.reserved
        told: list[int] = []
        if free < least and free < self.capacity:
            return told
        for who, account in sorted(self.accounts.items(), key=lambda item: item[1].rank):
            missing = min(share - account.unused, free)
            if missing < least or account.asked_back is not None or not account.active:
                continue
            account.limit += missing
            self.reserved += missing
            free -= missing
            self._turn += 1
            account.turn, account.wants, account.idle = self._turn, False, False
            told.append(who)
        return told

    def wanted(self, *, local: bool = False) -> bool:
        """Whether more is to be granted as soon as there is room."""
        share = self.share(local)
        least = max(1, share // 2)
        return any(
            share - account.unused >= least and account.asked_back is None and account.active
            for account in self.accounts.values()
        )

    def starving(self, *, local: bool = False) -> bool:
        """Whether somebody who wants a place has none: a sender, or, if `local`, one in this process."""
        return (local and self.reserved > 0) or any(
            account.wants and not account.unused for account in self.accounts.values()
        )

    def ask_back(self, *, local: bool = False) -> None:
        """Somebody starves: those who have used no place since the last call are to give some back."""
        share = self.share(local)
        for account in self.accounts.values():
            if account.asked_back is None and account.unused:
                keep = share if account.unused > share else 0
                if account.idle_at == account.arrived:
                    account.asked_back = account.arrived + keep
                account.idle_at = account.arrived

    @property
    def owing(self) -> list[int]:
        """Who is to give back what lies above the limit `asked_back`; asked until it has answered."""
        return [who for who, account in self.accounts.items() if account.asked_back is not None]

    def returned(self, who: int, number: int, limit: int) -> bool:
        """A sender has answered in round `number` that it keeps this limit; False for what is out of date."""
        account = self.accounts.get(who)
        if account is None or account.asked_back is None or number != account.round + 1:
            return False
        if not account.arrived <= limit <= account.limit:
            return False  # one that comes again has sent what was lost, and is asked again when that is known
        self.reserved -= account.limit - limit
        account.limit, account.round, account.asked_back = limit, number, None
        account.idle = limit == account.arrived and not account.returning
        account.returning = False
        return True


@attrs.define(eq=False)
class Purse:
    """The sender's side: how many messages it has sent, and how many it may have sent."""

    sent: int = 0
    limit: int = 0
    round: int = 0
    _answer: int = 0

    @property
    def credit(self) -> int:
        """How many more it may send."""
        return self.limit - self.sent

    def spend(self, count: int) -> int:
        """Send so many; gives the number of the first."""
        first = self.sent
        self.sent += count
        return first

    def granted(self, number: int, limit: int) -> bool:
        """Take a grant of round `number`; False when it says nothing new."""
        if number != self.round or limit <= self.limit:
            return False
        self.limit = limit
        return True

    def give_back(self, number: int, limit: int) -> int:
        """Give back what is not used above `limit`, in round `number`; gives the limit that is kept."""
        if number > self.round:
            self.round = number
            self.limit = self._answer = max(self.sent, min(self.limit, limit))
        return self._answer


def rendezvous(key: bytes, hosts: Iterable[tuple[bytes, Any]]) -> Any:
    """The host for a key: the one whose name, hashed with it, gives the most (Thaler and Ravishankar, 1998).

    When a host leaves, only its keys move; a new one takes its part from all others.
    """
    best, chosen = b"", None
    for name, host in hosts:
        weight = hashlib.blake2b(key, key=name[:64], digest_size=8).digest()
        if chosen is None or weight > best:
            best, chosen = weight, host
    return chosen
