# ruff: noqa: F821, F841, RET508, RUF100
# fmt: off
# Renewed by: UPDATE_EXPECTED=1 python -m pytest tests/generate/test_source.py

"""Wiring of tests.generate.declarations.Watched, generated from its declaration."""


def watch_outbox(post, inboxes, scheduler):
    """What watch sends: nothing that is known beforehand."""

    async def send(message, priority=None, overflow=None):
        return await post.send(message, priority, overflow)

    def try_send(message, priority=None, overflow=None):
        return post.try_send(message, priority, overflow)

    return send, try_send


def watch_worker(inbox, ctx, actor, part):
    """How watch is served: straight from the ready-queue."""
    on_line = actor.on_line
    on_signal = actor.on_signal
    deadline_passed = actor.deadline_passed
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
            on_line(ctx, message)
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
                    signal = inbox.take_signal()
                    if signal.__class__ is Deadline:
                        deadline_passed(ctx, signal.when)
                    elif signal is not None:
                        on_signal(ctx, signal)
                    continue
                if not normal_queue:
                    break
                if not budget:
                    budget = inbox.more()
                    if not budget:
                        break
                for count in inbox.course(budget, len(normal_queue)):
                    message = normal_queue.popleft()
                    on_line(ctx, message)
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


def alarm_outbox(post, inboxes, scheduler):
    """What alarm sends: Line to watch."""
    watch_inbox = inboxes["watch"]
    watch_normal = watch_inbox.by_priority[NORMAL]
    watch_normal_queue = watch_normal.queue

    async def send(message, priority=None, overflow=None):
        kind = message.__class__
        if kind is Line and priority is None and overflow is None:
            if watch_inbox.idle and watch_normal.room:
                watch_normal_queue.append(message)
                watch_inbox.idle = False
                scheduler.ready.append(watch_inbox.work)
                if not scheduler.awake:
                    scheduler.rise()
                return True
            if len(watch_normal_queue) < watch_normal.room:
                watch_normal_queue.append(message)
                return True
            return await watch_normal.put(message, message)
        return await post.send(message, priority, overflow)

    def try_send(message, priority=None, overflow=None):
        kind = message.__class__
        if kind is Line and priority is None and overflow is None:
            if watch_inbox.idle and watch_normal.room:
                watch_normal_queue.append(message)
                watch_inbox.idle = False
                scheduler.ready.append(watch_inbox.work)
                if not scheduler.awake:
                    scheduler.rise()
                return True
            if len(watch_normal_queue) < watch_normal.room:
                watch_normal_queue.append(message)
                return True
            return watch_normal.put_now(message, message)
        return post.try_send(message, priority, overflow)

    return send, try_send


def alarm_worker(inbox, ctx, actor, part):
    """How alarm is served: as a coroutine that parks."""
    deadline_passed = as_coroutine(actor.deadline_passed)
    parked = inbox.PARKED
    signals = inbox.signals
    (normal,) = inbox.lanes
    normal_queue = normal.queue
    allowed = left = 1

    @coroutine
    def serve():
        nonlocal allowed, left
        message = None
        try:
            while True:
                if signals:
                    message = None
                    signal = inbox.take_signal()
                    if signal.__class__ is Deadline:
                        yield from deadline_passed(ctx, signal.when)
                    continue
                if not left:
                    left, allowed = 1, allowed + 1  # also when it is cancelled: the others have run
                    more = inbox.more() or (yield from inbox.breathe())
                    left, allowed = left + more, allowed + more
                    continue
                if normal_queue:
                    message = normal_queue.popleft()
                    left -= 1
                    if normal.pressed:
                        normal.relieve()
                elif inbox.over:
                    return
                else:
                    inbox.idle = True
                    yield parked
                    continue
                raise AssertionError('alarm consumes nothing')
                message = None
        except BaseException:
            inbox.current = message
            raise

    def taken():
        return (allowed - left,)

    return serve, taken


def outside_outbox(post, inboxes, scheduler):
    """What the outside sends: Line to watch."""
    watch_inbox = inboxes["watch"]
    watch_normal = watch_inbox.by_priority[NORMAL]
    watch_normal_queue = watch_normal.queue

    async def send(message, priority=None, overflow=None):
        kind = message.__class__
        if kind is Line and priority is None and overflow is None:
            if watch_inbox.idle and watch_normal.room:
                watch_normal_queue.append(message)
                watch_inbox.idle = False
                scheduler.ready.append(watch_inbox.work)
                if not scheduler.awake:
                    scheduler.rise()
                return True
            if len(watch_normal_queue) < watch_normal.room:
                watch_normal_queue.append(message)
                return True
            return await watch_normal.put(message, message)
        return await post.send(message, priority, overflow)

    def try_send(message, priority=None, overflow=None):
        kind = message.__class__
        if kind is Line and priority is None and overflow is None:
            if watch_inbox.idle and watch_normal.room:
                watch_normal_queue.append(message)
                watch_inbox.idle = False
                scheduler.ready.append(watch_inbox.work)
                if not scheduler.awake:
                    scheduler.rise()
                return True
            if len(watch_normal_queue) < watch_normal.room:
                watch_normal_queue.append(message)
                return True
            return watch_normal.put_now(message, message)
        return post.try_send(message, priority, overflow)

    return send, try_send
