# ruff: noqa: F821, F841, RET508, RUF100
# fmt: off
# Renewed by: UPDATE_EXPECTED=1 python -m pytest tests/generate/test_source.py

"""Wiring of tests.generate.declarations.Boxed, generated from its declaration."""


def reader_outbox(post, inboxes, scheduler):
    """What reader sends: Line to keeper."""
    keeper_inbox = inboxes["keeper"]
    keeper_normal = keeper_inbox.by_priority[NORMAL]
    keeper_normal_queue = keeper_normal.queue

    async def send(message, priority=None, overflow=None):
        kind = message.__class__
        if kind is Line and priority is None and overflow is None:
            if keeper_inbox.idle and keeper_normal.room:
                keeper_normal_queue.append(message)
                keeper_inbox.idle = False
                scheduler.ready.append(keeper_inbox.work)
                if not scheduler.awake:
                    scheduler.rise()
                return True
            if len(keeper_normal_queue) < keeper_normal.room:
                keeper_normal_queue.append(message)
                return True
            return await keeper_normal.put(message, message)
        return await post.send(message, priority, overflow)

    def try_send(message, priority=None, overflow=None):
        kind = message.__class__
        if kind is Line and priority is None and overflow is None:
            if keeper_inbox.idle and keeper_normal.room:
                keeper_normal_queue.append(message)
                keeper_inbox.idle = False
                scheduler.ready.append(keeper_inbox.work)
                if not scheduler.awake:
                    scheduler.rise()
                return True
            if len(keeper_normal_queue) < keeper_normal.room:
                keeper_normal_queue.append(message)
                return True
            return keeper_normal.put_now(message, message)
        return post.try_send(message, priority, overflow)

    return send, try_send


def reader_receiver(inbox):
    """How reader receives: signals, then Count (high before normal)."""
    signals = inbox.signals
    high, normal = inbox.lanes
    high_queue = high.queue
    normal_queue = normal.queue
    high_taken = 0
    normal_taken = 0
    left = 1

    async def recv():
        nonlocal high_taken, normal_taken, left
        while True:
            if signals:
                return inbox.take_signal()
            if not left:
                left = 1  # also when it is cancelled: the others have run
                left += inbox.more() or (await inbox.breathe())
                continue
            if high_queue:
                message = high_queue.popleft()
                high_taken += 1
                left -= 1
                if high.pressed:
                    high.relieve()
                break
            elif normal_queue:
                message = normal_queue.popleft()
                normal_taken += 1
                left -= 1
                if normal.pressed:
                    normal.relieve()
                break
            await inbox.rest()
        if type(message) is Box and message.codec is codec_Count:
            message = Count(decode_Count(message.frame))
        elif message.__class__ in BOXES:
            message = message.codec.open(message)
        inbox.hold(message)
        return message

    async def following():
        try:
            return await recv()
        except Closed:
            raise StopAsyncIteration from None

    def try_recv():
        nonlocal high_taken, normal_taken
        if signals:
            return inbox.take_signal()
        if high_queue:
            message = high_queue.popleft()
            high_taken += 1
            if high.pressed:
                high.relieve()
        elif normal_queue:
            message = normal_queue.popleft()
            normal_taken += 1
            if normal.pressed:
                normal.relieve()
        else:
            return inbox.nothing()
        if type(message) is Box and message.codec is codec_Count:
            message = Count(decode_Count(message.frame))
        elif message.__class__ in BOXES:
            message = message.codec.open(message)
        inbox.hold(message)
        return message

    async def recv_signal():
        while not signals:
            await inbox.rest_for_signal()
        return inbox.take_signal()

    def taken():
        return high_taken, normal_taken

    return recv, try_recv, recv_signal, following, taken


def keeper_outbox(post, inboxes, scheduler):
    """What keeper sends: Count to reader, Report to outgoing."""
    reader_inbox = inboxes["reader"]
    reader_lanes = reader_inbox.by_priority
    reader_normal = reader_inbox.by_priority[NORMAL]
    outgoing_inbox = inboxes["outgoing"]
    outgoing_normal = outgoing_inbox.by_priority[NORMAL]
    outgoing_normal_queue = outgoing_normal.queue

    async def send(message, priority=None, overflow=None):
        kind = type(message)
        if kind is Count and overflow is None:
            if priority is None:
                lane = reader_normal
            else:
                lane = reader_lanes.get(priority) or reader_inbox.no_lane(priority, message)
            try:
                value = message.words
                box = Box(codec_Count, encode(value)) if type(value) is int else seal_Count(message)
            except BoxError:
                raise
            except Exception:
                box = seal_Count(message)
            if len(lane.queue) < lane.room:
                lane.queue.append(box)
                if reader_inbox.idle:
                    reader_inbox.wake()
                return True
            return await lane.put(box, message)
        if kind is Report and priority is None and overflow is None:
            if len(outgoing_normal_queue) < outgoing_normal.room:
                outgoing_normal_queue.append(message)
                if outgoing_inbox.idle:
                    outgoing_inbox.wake()
                return True
            return await outgoing_normal.put(message, message)
        return await post.send(message, priority, overflow)

    def try_send(message, priority=None, overflow=None):
        kind = type(message)
        if kind is Count and overflow is None:
            if priority is None:
                lane = reader_normal
            else:
                lane = reader_lanes.get(priority) or reader_inbox.no_lane(priority, message)
            try:
                value = message.words
                box = Box(codec_Count, encode(value)) if type(value) is int else seal_Count(message)
            except BoxError:
                raise
            except Exception:
                box = seal_Count(message)
            if len(lane.queue) < lane.room:
                lane.queue.append(box)
                if reader_inbox.idle:
                    reader_inbox.wake()
                return True
            return lane.put_now(box, message)
        if kind is Report and priority is None and overflow is None:
            if len(outgoing_normal_queue) < outgoing_normal.room:
                outgoing_normal_queue.append(message)
                if outgoing_inbox.idle:
                    outgoing_inbox.wake()
                return True
            return outgoing_normal.put_now(message, message)
        return post.try_send(message, priority, overflow)

    return send, try_send


def keeper_worker(inbox, ctx, actor, part):
    """How keeper is served: straight from the ready-queue."""
    on_line = actor.on_line
    on_signal = actor.on_signal
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
                    if signal is not None:
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
                    if normal.pressed:
                        normal.relieve()
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


def outside_outbox(post, inboxes, scheduler):
    """What the outside sends: Count to reader, Line to keeper, Report to outgoing."""
    reader_inbox = inboxes["reader"]
    reader_lanes = reader_inbox.by_priority
    reader_normal = reader_inbox.by_priority[NORMAL]
    keeper_inbox = inboxes["keeper"]
    keeper_normal = keeper_inbox.by_priority[NORMAL]
    keeper_normal_queue = keeper_normal.queue
    outgoing_inbox = inboxes["outgoing"]
    outgoing_normal = outgoing_inbox.by_priority[NORMAL]
    outgoing_normal_queue = outgoing_normal.queue

    async def send(message, priority=None, overflow=None):
        kind = type(message)
        if kind is Count and overflow is None:
            if priority is None:
                lane = reader_normal
            else:
                lane = reader_lanes.get(priority) or reader_inbox.no_lane(priority, message)
            try:
                value = message.words
                box = Box(codec_Count, encode(value)) if type(value) is int else seal_Count(message)
            except BoxError:
                raise
            except Exception:
                box = seal_Count(message)
            if len(lane.queue) < lane.room:
                lane.queue.append(box)
                if reader_inbox.idle:
                    reader_inbox.wake()
                return True
            return await lane.put(box, message)
        if kind is Line and priority is None and overflow is None:
            if keeper_inbox.idle and keeper_normal.room:
                keeper_normal_queue.append(message)
                keeper_inbox.idle = False
                scheduler.ready.append(keeper_inbox.work)
                if not scheduler.awake:
                    scheduler.rise()
                return True
            if len(keeper_normal_queue) < keeper_normal.room:
                keeper_normal_queue.append(message)
                return True
            return await keeper_normal.put(message, message)
        if kind is Report and priority is None and overflow is None:
            if len(outgoing_normal_queue) < outgoing_normal.room:
                outgoing_normal_queue.append(message)
                if outgoing_inbox.idle:
                    outgoing_inbox.wake()
                return True
            return await outgoing_normal.put(message, message)
        return await post.send(message, priority, overflow)

    def try_send(message, priority=None, overflow=None):
        kind = type(message)
        if kind is Count and overflow is None:
            if priority is None:
                lane = reader_normal
            else:
                lane = reader_lanes.get(priority) or reader_inbox.no_lane(priority, message)
            try:
                value = message.words
                box = Box(codec_Count, encode(value)) if type(value) is int else seal_Count(message)
            except BoxError:
                raise
            except Exception:
                box = seal_Count(message)
            if len(lane.queue) < lane.room:
                lane.queue.append(box)
                if reader_inbox.idle:
                    reader_inbox.wake()
                return True
            return lane.put_now(box, message)
        if kind is Line and priority is None and overflow is None:
            if keeper_inbox.idle and keeper_normal.room:
                keeper_normal_queue.append(message)
                keeper_inbox.idle = False
                scheduler.ready.append(keeper_inbox.work)
                if not scheduler.awake:
                    scheduler.rise()
                return True
            if len(keeper_normal_queue) < keeper_normal.room:
                keeper_normal_queue.append(message)
                return True
            return keeper_normal.put_now(message, message)
        if kind is Report and priority is None and overflow is None:
            if len(outgoing_normal_queue) < outgoing_normal.room:
                outgoing_normal_queue.append(message)
                if outgoing_inbox.idle:
                    outgoing_inbox.wake()
                return True
            return outgoing_normal.put_now(message, message)
        return post.try_send(message, priority, overflow)

    return send, try_send


def outgoing_receiver(inbox):
    """How outgoing receives: signals, then Report (normal)."""
    signals = inbox.signals
    (normal,) = inbox.lanes
    normal_queue = normal.queue
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
        return message

    async def recv_signal():
        while not signals:
            await inbox.rest_for_signal()
        return inbox.take_signal()

    def taken():
        return (allowed - left,)

    return recv, try_recv, recv_signal, following, taken
