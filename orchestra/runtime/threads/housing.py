"""Letting a blocking subsystem live in a thread: its context, and which of its verbs the loop sees to."""

from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any, NoReturn

import attrs

from orchestra.errors import Closed
from orchestra.generate.wiring import Wiring
from orchestra.plan import Style
from orchestra.runtime.ensemble import Ensemble, ask_to_stop
from orchestra.runtime.inbox import CALLED_FINISH, Inbox, Order
from orchestra.runtime.live import refused
from orchestra.runtime.part import Part
from orchestra.runtime.threads.context import LiveBlockingContext
from orchestra.runtime.threads.home import Home
from orchestra.runtime.threads.inbox import ThreadInbox
from orchestra.runtime.threads.post import ThreadPost
from orchestra.runtime.threads.worker import Worker
from orchestra.runtime.timers import PartTimers

Verb = Callable[..., Any]


def house(
    part: Part,
    wiring: Wiring,
    post: ThreadPost,
    inbox: ThreadInbox,
    receivers: Mapping[str, Inbox],
    ensemble: Ensemble,
    timers: PartTimers,
    recipient: Verb,
) -> None:
    """Give the part of a blocking subsystem its thread and its context."""
    assert part.plan is not None
    home, name = inbox.home, part.name
    part.worker = Worker(home)
    stop = partial(home.order, ensemble.stop_unless_stopping)
    finish = partial(home.order, partial(inbox.close, "finished", CALLED_FINISH))
    inbox.leader = _Leader(part, stop)
    send, try_send = wiring.outboxes[name](post, receivers, ensemble.scheduler)
    verbs: dict[str, Verb] = {
        "send": send,
        "try_send": try_send,
        "ask": in_loop(home, partial(ensemble.asks.ask, post, inbox)),
        "recipient": in_loop(home, recipient),
        "spawn": partial(_spawn, home, part),
    }
    if part.plan.style is Style.RUN:
        recv, try_recv, recv_signal, following, inbox.taken = wiring.receivers[name](inbox)
        verbs |= {"recv": recv, "try_recv": try_recv, "recv_signal": recv_signal, "__next__": following}
    else:
        verbs |= dict.fromkeys(("recv", "try_recv", "recv_signal", "__next__"), partial(_refuse, name))
        stop = partial(ask_to_stop, ensemble, part)
    part.ctx = LiveBlockingContext(inbox, verbs, stop, finish, timers)


def in_loop(home: Home, function: Verb) -> Verb:
    """A function as a verb of the thread: it is called, and what it gives awaited, in the loop."""

    def verb(*arguments: Any, **keywords: Any) -> Any:
        return home.do(partial(function, *arguments, **keywords))

    return verb


def _spawn(home: Home, part: Part, coroutine: Coroutine[Any, Any, Any], *, name: str | None = None) -> None:
    def spawn() -> None:  # the task is not to be waited for, so this does not give it
        part.spawn(coroutine, name=name)

    try:
        home.do(spawn)
    except Closed:
        coroutine.close()
        raise


def _refuse(name: str) -> NoReturn:
    raise refused(name)


@attrs.frozen
class _Leader:
    """Has the loop stop the orchestra."""

    part: Part
    stop: Callable[[], None]

    def obey(self, order: Order) -> None:
        if order is Order.STOP:
            self.stop()
        else:
            self.part.obey(order)
