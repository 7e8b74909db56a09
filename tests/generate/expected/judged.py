# ruff: noqa: F821, F841, RET508, RUF100
# fmt: off
# Renewed by: UPDATE_EXPECTED=1 python -m pytest tests/generate/test_source.py

"""Wiring of tests.generate.declarations.Judged, generated from its declaration."""


def reader_outbox(post, inboxes, scheduler):
    """What reader sends: Line to judge, Count to judge."""
    judge_inbox = inboxes["judge"]
    judge_lanes = judge_inbox.by_priority
    judge_priority = judge_inbox.level

    async def send(message, priority=None, overflow=None):
        kind = message.__class__
        if kind is Line and overflow is None:
            if priority is None:
                priority = judge_priority(message)
            lane = judge_lanes.get(priority) or judge_inbox.no_lane(priority, message)
            if judge_inbox.idle and lane.room:
                lane.queue.append(message)
                judge_inbox.idle = False
                scheduler.ready.append(judge_inbox.work)
                if not scheduler.awake:
                    scheduler.rise()
                return True
            if len(lane.queue) < lane.room:
                lane.queue.append(message)
                return True
            return await lane.put(message, message)
        if kind is Count and overflow is None:
            if priority is None:
                priority = judge_priority(message)
            lane = judge_lanes.get(priority) or judge_inbox.no_lane(priority, message)
            if judge_inbox.idle and lane.room:
                lane.queue.append(message)
                judge_inbox.idle = False
                scheduler.ready.append(judge_inbox.work)
                if not scheduler.awake:
                    scheduler.rise()
                return True
            if len(lane.queue) < lane.room:
                lane.queue.append(message)
                return True
            return await lane.put(message, message)
        return await post.send(message, priority, overflow)

    def try_send(message, priority=None, overflow=None):
        kind = message.__class__
        if kind is Line and overflow is None:
            if priority is None:
                priority = judge_priority(message)
            lane = judge_lanes.get(priority) or judge_inbox.no_lane(priority, message)
            if judge_inbox.idle and lane.room:
                lane.queue.append(message)
                judge_inbox.idle = False
                scheduler.ready.append(judge_inbox.work)
                if not scheduler.awake:
                    scheduler.rise()
                return True
            if len(lane.queue) < lane.room:
                lane.queue.append(message)
                return True
            return lane.put_now(message, message)
        if kind is Count and overflow is None:
            if priority is None:
                priority = judge_priority(message)
            lane = judge_lanes.get(priority) or judge_inbox.no_lane(priority, message)
            if judge_inbox.idle and lane.room:
                lane.queue.append(message)
                judge_inbox.idle = False
                scheduler.ready.append(judge_inbox.work)
                if not scheduler.awake:
                    scheduler.rise()
                return True
            if len(lane.queue) < lane.room:
                lane.queue.append(message)
                return True
            return lane.put_now(message, message)
        return post.try_send(message, priority, overflow)

    return send, try_send


def reader_receiver(inbox):
    """How reader receives: signals, then nothing (normal)."""
    signals = inbox.signals
    (normal,) = inbox.lanes
    normal_queue = normal.queue
    scheduler = inbox.scheduler
    allowed = left = 1

    async def recv():
        nonlocal allowed, left
        while True:
            if signals:
                return inbox.take_signal()
            if not left:
                left, allowed = 1, allowed + 1  # also when it is cancelled: the others have run
                more = inbox.more() or (await inbox.breathe())
                left, allowed = left + more, allowed + more
                continue
            if normal_queue:
                message = normal_queue.popleft()
                left -= 1
                if normal.pressed:
                    normal.relieve()
                break
            await inbox.rest()
        if scheduler.began:
            inbox.current = message
        else:
            inbox.hold(message)  # another task than the strand's
        return message

    async def following():
        try:
            return await recv()
        except Closed:
            raise StopAsyncIteration from None

    def try_recv():
        nonlocal allowed
        if signals:
            return inbox.take_signal()
        if normal_queue:
            message = normal_queue.popleft()
            allowed += 1
            if normal.pressed:
                normal.relieve()
        else:
            return inbox.nothing()
        if scheduler.began:
            inbox.current = message
        else:
            inbox.hold(message)  # another task than the strand's
        return message

    async def recv_signal():
        while not signals:
            await inbox.rest_for_signal()
        return inbox.take_signal()

    def taken():
        return (allowed - left,)

    return recv, try_recv, recv_signal, following, taken


def judge_outbox(post, inboxes, scheduler):
    """What judge sends: nothing that is known beforehand."""

    async def send(message, priority=None, overflow=None):
        return await post.send(message, priority, overflow)

    def try_send(message, priority=None, overflow=None):
        return post.try_send(message, priority, overflow)

    return send, try_send


def judge_worker(inbox, ctx, actor, part):
    """How judge is served: as a coroutine that parks."""
    on_line = actor.on_line
    on_count = as_coroutine(actor.on_count)
    on_signal = actor.on_signal
    parked = inbox.PARKED
    signals = inbox.signals
    high, normal = inbox.lanes
    high_queue = high.queue
    normal_queue = normal.queue
    high_taken = 0
    normal_taken = 0
    left = 1

    @coroutine
    def serve():
        nonlocal high_taken, normal_taken, left
        message = None
        try:
            while True:
                if signals:
                    message = None
                    signal = inbox.take_signal()
                    if signal is not None:
                        on_signal(ctx, signal)
                    continue
                if not left:
                    left = 1  # also when it is cancelled: the others have run
                    left += inbox.more() or (yield from inbox.breathe())
                    continue
                if high_queue:
                    message = high_queue.popleft()
                    high_taken += 1
                    left -= 1
                    if high.pressed:
                        high.relieve()
                elif normal_queue:
                    message = normal_queue.popleft()
                    normal_taken += 1
                    left -= 1
                    if normal.pressed:
                        normal.relieve()
                elif inbox.over:
                    return
                else:
                    inbox.idle = True
                    yield parked
                    continue
                kind = message.__class__
                if kind is Line:
                    on_line(ctx, message)
                elif kind is Count:
                    yield from on_count(ctx, message)
                else:
                    yield from part.handle_other_async(ctx, message)
                message = None
        except BaseException:
            inbox.current = message
            raise

    def taken():
        return high_taken, normal_taken

    return serve, taken


def log_outbox(post, inboxes, scheduler):
    """What log sends: nothing that is known beforehand."""

    async def send(message, priority=None, overflow=None):
        return await post.send(message, priority, overflow)

    def try_send(message, priority=None, overflow=None):
        return post.try_send(message, priority, overflow)

    return send, try_send


def log_worker(inbox, ctx, actor, part):
    """How log is served: straight from the ready-queue."""
    handle = actor.handle
    signals = inbox.signals
    (normal,) = inbox.lanes
    normal_queue = normal.queue
    normal_taken = 0

    def work():
        nonlocal normal_taken
        if inbox.alert or len(normal_queue) != 1:
            return inbox.batch()
        message = normal_queue.popleft()
        normal_taken += 1
        try:
            handle(ctx, message)
        except BaseException as error:
            return inbox.broke(error, message)
        if inbox.alert or normal_queue:
            return inbox.batch() + 1
        inbox.idle = True
        return 0

    def batch():
        nonlocal normal_taken
        message, count = None, 0
        budget = whole = inbox.scheduler.left() + 1
        try:
            while True:
                if signals:
                    message = None
                    inbox.take_signal()
                    continue
                if not normal_queue:
                    break
                if not budget:
                    budget = inbox.more()
                    if not budget:
                        break
                for count in inbox.course(budget, len(normal_queue)):
                    message = normal_queue.popleft()
                    handle(ctx, message)
                normal_taken += count
                budget -= count
                count = 0
        except BaseException as error:
            normal_taken += count
            return part.broke(error, message)
        if inbox.alert:
            inbox.attend()
        if signals or normal_queue:
            part.again()
        elif inbox.over:
            part.served()
        else:
            inbox.idle = True
        return whole - budget - 1

    inbox.batch, inbox.broke = batch, part.broke

    def taken():
        return (normal_taken,)

    return work, taken


def outside_outbox(post, inboxes, scheduler):
    """What the outside sends: Line to judge, Count to judge."""
    judge_inbox = inboxes["judge"]
    judge_lanes = judge_inbox.by_priority
    judge_priority = judge_inbox.level

    async def send(message, priority=None, overflow=None):
        kind = message.__class__
        if kind is Line and overflow is None:
            if priority is None:
                priority = judge_priority(message)
            lane = judge_lanes.get(priority) or judge_inbox.no_lane(priority, message)
            if judge_inbox.idle and lane.room:
                lane.queue.append(message)
                judge_inbox.idle = False
                scheduler.ready.append(judge_inbox.work)
                if not scheduler.awake:
                    scheduler.rise()
                return True
            if len(lane.queue) < lane.room:
                lane.queue.append(message)
                return True
            return await lane.put(message, message)
        if kind is Count and overflow is None:
            if priority is None:
                priority = judge_priority(message)
            lane = judge_lanes.get(priority) or judge_inbox.no_lane(priority, message)
            if judge_inbox.idle and lane.room:
                lane.queue.append(message)
                judge_inbox.idle = False
                scheduler.ready.append(judge_inbox.work)
                if not scheduler.awake:
                    scheduler.rise()
                return True
            if len(lane.queue) < lane.room:
                lane.queue.append(message)
                return True
            return await lane.put(message, message)
        return await post.send(message, priority, overflow)

    def try_send(message, priority=None, overflow=None):
        kind = message.__class__
        if kind is Line and overflow is None:
            if priority is None:
                priority = judge_priority(message)
            lane = judge_lanes.get(priority) or judge_inbox.no_lane(priority, message)
            if judge_inbox.idle and lane.room:
                lane.queue.append(message)
                judge_inbox.idle = False
                scheduler.ready.append(judge_inbox.work)
                if not scheduler.awake:
                    scheduler.rise()
                return True
            if len(lane.queue) < lane.room:
                lane.queue.append(message)
                return True
            return lane.put_now(message, message)
        if kind is Count and overflow is None:
            if priority is None:
                priority = judge_priority(message)
            lane = judge_lanes.get(priority) or judge_inbox.no_lane(priority, message)
            if judge_inbox.idle and lane.room:
                lane.queue.append(message)
                judge_inbox.idle = False
                scheduler.ready.append(judge_inbox.work)
                if not scheduler.awake:
                    scheduler.rise()
                return True
            if len(lane.queue) < lane.room:
                lane.queue.append(message)
                return True
            return lane.put_now(message, message)
        return post.try_send(message, priority, overflow)

    return send, try_send
