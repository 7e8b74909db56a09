"""What ties a running orchestra to its parts in other processes.

It belongs to the event loop. What comes from others is read in turns, control before messages and urgent ones
before the rest; a clock ticks for what was not answered; at the end of the orchestra it says goodbye and
closes the session.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from time import monotonic
from typing import Any

from orchestra.box import Box
from orchestra.link import inlet, outlet, wire
from orchestra.link.circle import Circle
from orchestra.link.crossing import check_plan
from orchestra.link.inlet import Inlet
from orchestra.link.keys import sender_of
from orchestra.link.mailbox import CLOSING, Link, Mailbox, opened
from orchestra.link.outlet import Outlet
from orchestra.link.parcels import Kinds
from orchestra.link.peers import Neighbour, State
from orchestra.link.questions import Questions
from orchestra.link.rest import Rest
from orchestra.link.signals import Packed, Signals
from orchestra.link.wire import Control, Malformed
from orchestra.priority import Priority
from orchestra.runtime.afar import Peer
from orchestra.runtime.conductor import put
from orchestra.runtime.ensemble import Ensemble
from orchestra.runtime.inbox import Inbox
from orchestra.runtime.letters import DeadLetter
from orchestra.runtime.lifecycle import Phase
from orchestra.runtime.log import logger
from orchestra.runtime.recipients import Recipients

__all__ = ["Engine", "Link", "Mailbox", "check_plan", "opened"]

GOODBYE = 0.5
"""Seconds in which the goodbye of a process that ends may come after its token has gone."""

TICK = 0.1
"""Seconds between two looks at what was not answered."""

LATER = 0.01
"""Seconds after which a sender is told what has arrived, where nothing else is to be told to it before."""

PATIENCE = 0.5
"""Seconds after which what was not answered is asked again."""

SLICE = 0.002
"""Seconds after which reading gives the loop back."""

FAREWELL = 1.0
"""Seconds that the end waits for others to say what has arrived."""

PATIENT = 10.0
"""Seconds that a process which has ended in a drain stays linked for the others."""


class Engine:
    """The link of one running orchestra; what `Ensemble.afar` is."""

    def __init__(
        self,
        mailbox: Mailbox,
        ensemble: Ensemble,
        instances: Mapping[str, Any],
        on_peer: Callable[[Peer], object] | None,
    ) -> None:
        plan = self.plan = ensemble.plan
        self.mailbox = mailbox
        self.ensemble = ensemble
        self.loop = ensemble.loop
        self.names = tuple(plan.subsystems)
        self.hosts = tuple(name for name, each in plan.subsystems.items() if not (each.remote or each.wip))
        self.process = mailbox.link.name or "-".join(self.hosts) or plan.name
        self._kinds = Kinds(plan)
        self.circle = Circle(self, on_peer)
        self._soon: dict[Callable[[], None], None] = {}
        self._later: dict[Callable[[], None], None] = {}
        self.questions = Questions(plan, ensemble.asks, self._do_later, self.loop.time)
        self.signals = Signals(
            mailbox.epoch, self._kinds, self.loop, self.circle.here, self._put_signal, self._caught_up
        )
        self._rest = Rest(self)
        self.outlets = self._make_outlets(instances)
        self.inlets: dict[int, Inlet] = {}
        self.strange = 0
        self._ticker: asyncio.TimerHandle | None = None
        self._reading = False
        self._closing: asyncio.Task[None] | None = None
        self._held_since = 0.0
        self.stop_told = False
        self._lingers = 0.0
        ensemble.afar = self
        ensemble.asks.absent = lambda name: name in self.outlets and self.outlets[name].inbox.absent

    # the start

    @property
    def inboxes(self) -> Mapping[str, Inbox]:
        """What stands here for the inboxes of subsystems elsewhere."""
        return {name: each.inbox for name, each in self.outlets.items()}

    def launch(self, recipients: Recipients) -> None:
        """Everything is wired: let others know of this process."""
        self.questions.recipient = recipients.to
        around = inlet.Surroundings(
            self._kinds, self.signals.seen, self.questions.back, self._do_soon, self._do_later, self._noise
        )
        for place, name in enumerate(self.names):
            if name in self.hosts:
                inbox = self.ensemble.inboxes[name]
                self.inlets[place] = Inlet(name, place, inbox, self.plan, around)
        self.ensemble.ended.add_done_callback(lambda _: self._begin_to_close())
        self.mailbox.look = self._look
        announcing = self.loop.run_in_executor(None, self.mailbox.announce, self.process, self.hosts)
        announcing.add_done_callback(_log_failure)
        self._ticker = self.loop.call_later(TICK, self._tick)
        self._look()

    def _make_outlets(self, instances: Mapping[str, Any]) -> dict[str, Outlet]:
        around = outlet.Surroundings(
            kinds=self._kinds,
            signals=lambda: self.signals.carried,
            out=self.questions.out,
            lost=self._bury,
            now=self.loop.time,
        )
        made: dict[str, Outlet] = {}
        for place, (name, subsystem) in enumerate(self.plan.subsystems.items()):
            if subsystem.remote:
                inbox = self.ensemble.make_inbox(
                    name, subsystem.lanes, subsystem.signal_capacity, subsystem.evict_after
                )
                if subsystem.has_priority:
                    kind: Any = subsystem.kind
                    inbox.level = kind.priority
                made[name] = Outlet(name, place, inbox, instances[name], around)
        return made

    # what the ensemble asks of those afar

    @property
    def released(self) -> bool:
        """Whether all of them were found at rest in a drain, or there is nobody."""
        return self._rest.released

    @property
    def unfinished(self) -> Mapping[str, Collection[str]]:
        """The subsystems of others that have not finished, with those who may send to them."""
        names = {
            name
            for each in self.circle.here()
            for name in each.hosts
            if name not in each.finished and name in self.outlets
        }
        return {name: self.plan.subsystems[name].senders for name in names}

    def peers(self) -> Mapping[str, Peer]:
        return self.circle.peers()

    def pack(self, signal: Any) -> Packed:
        return self.signals.pack(signal)

    def tell(self, packed: Packed) -> "asyncio.Future[None] | None":
        return self.signals.tell(packed)

    def stalled(self, packed: Packed) -> list[str]:
        return list(dict.fromkeys(name for names in packed.unread.values() for name in names))

    def stop(self, timeout: float) -> None:
        """Tell all others to stop."""
        self.stop_told = True
        self._lingers = max(self._lingers, timeout + FAREWELL)
        for each in self.circle.here():
            each.tell(wire.Stop(timeout))

    def stopping(self) -> None:
        """This process stops: what is queued for others still goes out."""
        for each in self.outlets.values():
            each.stop()

    def drain(self) -> None:
        self._lingers = max(self._lingers, PATIENT)
        for each in self.circle.here():
            each.tell(wire.Drain())
        self._rest.begin()

    def finished(self, name: str) -> None:
        self._rest.finished(name)

    async def others_ended(self, timeout: float) -> None:
        """Wait until the others have ended, `timeout` seconds and a little at most."""
        self._begin_to_close()
        assert self._closing is not None
        await asyncio.wait([self._closing], timeout=timeout + CLOSING + 2 * FAREWELL)

    # what others say

    def _look(self) -> None:
        """Read what has come, for no longer than a slice; the rest at the next turn."""
        if self._reading or self.mailbox.look is None:
            return
        self._read()

    def _read(self) -> None:
        self._reading = False
        mailbox = self.mailbox
        if mailbox.look is None:
            return
        began = monotonic()
        while True:
            while mailbox.signs:
                self.circle.sign(*mailbox.signs.popleft())
            while mailbox.control:
                key, payload, _ = mailbox.control.popleft()
                self._safely(self._control, key, payload)
                if monotonic() - began > SLICE:
                    break
            arrivals = next((arrivals for arrivals in mailbox.levels.values() if arrivals), None)
            if arrivals is not None and not mailbox.control:
                self._safely(self._messages, *arrivals.popleft())
            elif not mailbox.control:
                return
            if monotonic() - began > SLICE:
                self._reading = True
                self.loop.call_soon(self._read)
                return

    def _safely(self, read: Callable[..., None], *arrival: Any) -> None:
        """Read something; whatever is wrong with it, the loop goes on."""
        try:
            read(*arrival)
        except Exception:
            self._strange(f"something that could not be read, under the key {arrival[0]}", exc_info=True)

    def _strange(self, what: str, *, exc_info: bool = False) -> None:
        """Something came that no process of this orchestra has sent: count it, and tell of the first."""
        self.strange += 1
        if self.strange == 1:
            logger.warning("refused %s; the next ones are only counted", what, exc_info=exc_info)

    def _messages(self, key: str, payload: bytes, attachment: bytes) -> None:
        neighbour = self._sender(key)
        if neighbour is None or not neighbour.is_heard:
            self._strange(f"messages from nobody who has said hello, under the key {key}")
            return
        try:
            header = wire.read_header(attachment)
            found = self.inlets.get(header.subsystem)
            if found is None:
                raise Malformed(f"messages for a subsystem that does not run here, number {header.subsystem}")
            found.packet(neighbour, header, payload)
        except Malformed as error:
            self._noise(neighbour, str(error))

    def _control(self, key: str, payload: bytes) -> None:
        epoch = sender_of(key)
        if epoch is None or epoch == self.mailbox.epoch:
            return
        neighbour = self.circle.neighbours.get(epoch)
        try:
            control = wire.read_control(payload)
            if isinstance(control, wire.Hello):
                if neighbour is not None:  # else its token comes yet, and it is greeted then
                    self.circle.hello(neighbour, control)
            elif neighbour is None:
                self._strange(f"a {type(control).__name__} before a hello, under the key {key}")
            else:
                self._handle(neighbour, control)
        except Malformed as error:
            if neighbour is None:
                self._strange(f"{error}, under the key {key}")
            else:
                self._noise(neighbour, str(error))

    def _handle(self, neighbour: Neighbour, control: Control) -> None:
        match control:
            case wire.Declares():
                self.circle.declares(neighbour, control)
            case wire.Refuses():
                self.circle.refuse(neighbour, f"it refuses this process: {control.why}", tell=False)
            case _ if not neighbour.is_heard:
                return
            case wire.Bye():
                self._news(neighbour, control.lanes)
                neighbour.ended = True
                self.circle.gone(neighbour, "it has ended")
            case _:
                self._handle_friend(neighbour, control)

    def _handle_friend(self, neighbour: Neighbour, control: Control) -> None:  # noqa: C901 - a table in code
        match control:
            case wire.Grants():
                self._news(neighbour, control.lanes)
            case wire.AsksBack():
                self._asks_back(neighbour, control)
            case wire.GivesBack():
                lanes = self._inlet_of(control.subsystem).lanes
                level = Priority(control.level)
                if level in lanes:
                    lanes[level].returned(neighbour, control.round, control.limit)
            case wire.Told():
                self.signals.came(neighbour, control)
            case wire.Missed():
                self.signals.again(neighbour, control.number)
            case wire.Forgotten():
                self.signals.forgotten(neighbour, control.number)
            case wire.Seen():
                self.signals.was_seen(neighbour, control)
            case wire.Answer() | wire.Failure():
                self.questions.answered(neighbour, control)
            case wire.Heard():
                self.questions.heard(neighbour, control.numbers)
            case wire.Stop():
                neighbour.tell(wire.Ending())
                neighbour.ending = True
                timeout = min(max(control.timeout, 0.0), 3600.0)
                self.stop_told = True
                self._lingers = max(self._lingers, timeout + FAREWELL)
                self.ensemble.begin_stop(timeout)
            case wire.Ending():
                neighbour.ending = True
            case wire.Drain():
                neighbour.ending = True
                self.ensemble.close_outside()
            case wire.HowQuiet():
                self.ensemble.close_outside()  # whoever asks this drains, and may have been misheard
                neighbour.tell(self._rest.told(control.number))
            case wire.Quiet():
                neighbour.noticed = control
            case wire.Finished():
                neighbour.finished = neighbour.finished.union(control.names)
                self.ensemble.others_changed()
            case _:
                raise Malformed(f"a {type(control).__name__} at the wrong time")

    def _news(self, neighbour: Neighbour, lanes: list[wire.LaneNews]) -> None:
        for news in lanes:
            found = self._outlet_of(news.subsystem)
            for place, lane in enumerate(found.inbox.lanes):
                if lane.priority == news.level:
                    found.news(neighbour, place, news)

    def _asks_back(self, neighbour: Neighbour, asked: wire.AsksBack) -> None:
        found = self._outlet_of(asked.subsystem)
        for place, lane in enumerate(found.inbox.lanes):
            if lane.priority == asked.level:
                kept = found.give_back(neighbour, place, asked.round, asked.limit)
                if kept is not None:
                    neighbour.tell(wire.GivesBack(asked.subsystem, asked.level, asked.round, kept))

    def _outlet_of(self, place: int) -> Outlet:
        name = self.names[place] if place < len(self.names) else None
        if name not in self.outlets:
            raise Malformed(f"news of a subsystem that is not elsewhere, number {place}")
        return self.outlets[name]

    def _inlet_of(self, place: int) -> Inlet:
        if place not in self.inlets:
            raise Malformed(f"something for a subsystem that does not run here, number {place}")
        return self.inlets[place]

    def _sender(self, key: str) -> Neighbour | None:
        epoch = sender_of(key)
        return None if epoch is None else self.circle.neighbours.get(epoch)

    def _noise(self, neighbour: Neighbour, what: str) -> None:
        """Something came that is not as it should be: count it, and tell of the first."""
        neighbour.noise += 1
        if not neighbour.noise_told:
            neighbour.noise_told = True
            logger.warning("refused something from %s: %s; the next ones are only counted", neighbour, what)

    @property
    def all_arrived(self) -> bool:
        """Whether all that was sent from here has arrived, and all that came is in its lane."""
        return all(each.empty for each in self.outlets.values()) and not any(
            lane.holds_back for found in self.inlets.values() for lane in found.lanes.values()
        )

    # signals

    def _put_signal(self, signal: Any) -> "tuple[list[str], asyncio.Future[Any] | None]":
        if self.ensemble.phase in (Phase.STOPPING, Phase.ENDED):
            return [], None
        told = put(self.ensemble.inboxes.values(), signal)
        over = {inbox.name: future for inbox in told if (future := inbox.over_capacity()) is not None}
        return list(over), asyncio.gather(*over.values()) if over else None

    def _caught_up(self) -> None:
        for found in self.inlets.values():
            for lane in found.lanes.values():
                lane.let_in()

    # now and then

    def _do_soon(self, function: Callable[[], None]) -> None:
        if not self._soon:
            self.ensemble.scheduler.add(self._do)
        self._soon[function] = None

    def _do(self) -> int:
        soon, self._soon = self._soon, {}
        for function in soon:
            function()
        return 0

    def _do_later(self, function: Callable[[], None]) -> None:
        if not self._later:
            self.loop.call_later(LATER, self._do_what_was_left)
        self._later[function] = None

    def _do_what_was_left(self) -> None:
        later, self._later = self._later, {}
        for function in later:
            function()

    def _tick(self) -> None:
        self._ticker = self.loop.call_later(TICK, self._tick)
        now = self.loop.time()
        grace = self.mailbox.link.lease / 2
        for neighbour in list(self.circle.neighbours.values()):
            if neighbour.state is State.AWAY and now - neighbour.away_at > grace:
                self.circle.gone(neighbour, "nothing was heard of it for too long")
            if neighbour.has_vanished and now - neighbour.away_at > GOODBYE:
                self.circle.gone(neighbour, "it has ended")
            waited = neighbour.alive and neighbour.state in (State.MET, State.AWAY, State.GONE)
            if waited and not neighbour.ended and now - neighbour.greeted_at > PATIENCE:
                self.circle.greet(neighbour, back=True)
        self.questions.tell_again(PATIENCE)
        self.signals.tell_again()
        for each in self.outlets.values():
            each.tick(now, PATIENCE)
        for found in self.inlets.values():
            for lane in found.lanes.values():
                lane.tick()
        self._give_up_signals(now)

    def _give_up_signals(self, now: float) -> None:
        """What is held back for a signal that nobody has any more is let in after some time."""
        held_back = [
            lane for found in self.inlets.values() for lane in found.lanes.values() if lane.holds_back
        ]
        if not held_back:
            self._held_since = 0.0
        elif not self._held_since:
            self._held_since = now
        elif now - self._held_since > PATIENCE:
            for lane in held_back:
                for origin, count in lane.needs().items():
                    neighbour = self.circle.neighbours.get(origin)
                    dead = neighbour is not None and neighbour.state in (State.GONE, State.REFUSED)
                    if neighbour is not None and neighbour.state is State.HERE:
                        neighbour.tell(wire.Missed(self.signals.seen.get(origin, 0) + 1))
                    elif dead or now - self._held_since > 2 * self.mailbox.link.lease:
                        self.signals.give_up(origin, count)
                lane.let_in()

    # leaving

    def _bury(self, box: Box[Any], name: str, reason: str, error: BaseException | None) -> None:
        self.ensemble.letters.bury(DeadLetter(box.open(), name, reason, error))

    def _begin_to_close(self) -> None:
        if self._closing is None:
            self._closing = self.loop.create_task(self._close(), name="orchestra link closes")

    async def _close(self) -> None:
        """Send what can be sent, hear what has arrived, say goodbye, and close the session.

        Where all are to end, the session stays open until they have: others may be linked through it.
        """
        try:
            for each in self.outlets.values():
                each.stop()
                each.wake()
            await self._while(self._waits_for_others, FAREWELL)
            for each in self.outlets.values():
                each.close()
            self._say_goodbye()
            self.circle.parted = True
            await self._while(self._others_end, self._lingers)
        finally:
            if self._ticker is not None:
                self._ticker.cancel()
            await self.mailbox.close()
            for each in self.outlets.values():
                each.close()
            for neighbour in self.circle.neighbours.values():
                self.questions.gone(neighbour)

    async def _while(self, condition: Callable[[], bool], seconds: float) -> None:
        """Wait while a condition holds, and go on asking what has arrived."""
        now = asked = self.loop.time()
        end = now + seconds
        while now < end and condition():
            if now - asked > TICK:
                asked = now
                for each in self.outlets.values():
                    each.ask_again()
                if self.circle.parted:
                    self._say_goodbye()  # nobody says that it was heard
                elif self.stop_told:
                    for neighbour in self.circle.here():
                        if not neighbour.ending:
                            neighbour.tell(wire.Stop(max(0.0, self._lingers - FAREWELL)))
            await asyncio.sleep(0.005)
            now = self.loop.time()

    def _waits_for_others(self) -> bool:
        """Whether something is on the way to processes that are there, or one has not heard of the stop."""
        if any(
            each.unheard_of(neighbour) for each in self.outlets.values() for neighbour in self.circle.here()
        ):
            return True
        return self.stop_told and any(not each.ending for each in self.circle.here())

    def _others_end(self) -> bool:
        """Whether one that ends may need this one still, to hear its goodbye or to be linked through it."""
        return any(each.ending and not each.has_vanished for each in self.circle.here())

    def _say_goodbye(self) -> None:
        """Say it to those too who have said it themselves and wait until all have."""
        for neighbour in self.circle.neighbours.values():
            if neighbour.state is State.HERE or (neighbour.ended and neighbour.alive):
                neighbour.tell(wire.Bye(self._last_news(neighbour)))

    def _last_news(self, neighbour: Neighbour) -> list[wire.LaneNews]:
        found = (lane.news_for(neighbour) for each in self.inlets.values() for lane in each.lanes.values())
        return [news for news in found if news is not None]

    async def closed(self) -> None:
        """Wait until the session is closed; called at the end of the `async with`, whatever has happened."""
        self._begin_to_close()
        assert self._closing is not None
        try:
            await asyncio.shield(self._closing)
        except asyncio.CancelledError:
            self.mailbox.session.close(CLOSING)
            raise


def _log_failure(future: "asyncio.Future[Any]") -> None:
    if not future.cancelled() and (error := future.exception()) is not None:
        logger.error("the link failed: %s", error)
