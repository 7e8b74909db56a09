# ruff: noqa: F821, F841, RET508, RUF100
# fmt: off
# Renewed by: UPDATE_EXPECTED=1 python -m pytest tests/generate/test_source.py

"""Wiring of tests.generate.declarations.Weighed, generated from its declaration."""


def reader_outbox(post, inboxes, scheduler):
    """What reader sends: Parcel to keeper and log, Line to keeper, Count to tally, Report to ledger."""
    keeper_inbox = inboxes["keeper"]
    keeper_normal = keeper_inbox.by_priority[NORMAL]
    log_inbox = inboxes["log"]
    log_normal = log_inbox.by_priority[NORMAL]
    log_normal_queue = log_normal.queue
    tally_inbox = inboxes["tally"]
    tally_lanes = tally_inbox.by_priority
    tally_normal = tally_inbox.by_priority[NORMAL]
    ledger_inbox = inboxes["ledger"]
    ledger_normal = ledger_inbox.by_priority[NORMAL]

    async def send(message, priority=None, overflow=None):
        kind = type(message)
        if kind is Parcel and priority is None and overflow is None:
            box = seal_Parcel(message)
            keeper_normal.check(box, message)
            taken, late = True, ()
            if not keeper_normal.offer(box):
                late += ((keeper_normal, box),)
            if len(log_normal_queue) < log_normal.room:
                log_normal_queue.append(box)
                if log_inbox.idle:
                    log_inbox.idle = False
                    scheduler.ready.append(log_inbox.work)
                    if not scheduler.awake:
                        scheduler.rise()
            else:
                late += ((log_normal, box),)
            if late:
                others = len(late) < 2
                return await post.spread(post.living(late, 2), message, others=others) and taken
            return taken
        if kind is Line and priority is None and overflow is None:
            if keeper_normal.offer(message):
                return True
            return await keeper_normal.put(message, message)
        if kind is Count and overflow is None:
            if priority is None:
                lane = tally_normal
            else:
                lane = tally_lanes.get(priority) or tally_inbox.no_lane(priority, message)
            try:
                value = message.words
                box = Box(codec_Count, encode(value)) if type(value) is int else seal_Count(message)
            except BoxError:
                raise
            except Exception:
                box = seal_Count(message)
            if lane.offer(box):
                return True
            lane.check(box, message)
            return await lane.put(box, message)
        if kind is Report and priority is None and overflow is None:
            try:
                value = message.total
                box = Box(codec_Report, encode(value)) if type(value) is int else seal_Report(message)
            except BoxError:
                raise
            except Exception:
                box = seal_Report(message)
            if ledger_normal.offer(box):
                return True
            ledger_normal.check(box, message)
            return await ledger_normal.put(box, message)
        return await post.send(message, priority, overflow)

    def try_send(message, priority=None, overflow=None):
        kind = type(message)
        if kind is Parcel and priority is None and overflow is None:
            box = seal_Parcel(message)
            keeper_normal.check(box, message)
            taken, late = True, ()
            if not keeper_normal.offer(box):
                late += ((keeper_normal, box),)
            if len(log_normal_queue) < log_normal.room:
                log_normal_queue.append(box)
                if log_inbox.idle:
                    log_inbox.idle = False
                    scheduler.ready.append(log_inbox.work)
                    if not scheduler.awake:
                        scheduler.rise()
            else:
                late += ((log_normal, box),)
            if late:
                return post.spread_now(post.living(late, 2), message) and taken
            return taken
        if kind is Line and priority is None and overflow is None:
            if keeper_normal.offer(message):
                return True
            return keeper_normal.put_now(message, message)
        if kind is Count and overflow is None:
            if priority is None:
                lane = tally_normal
            else:
                lane = tally_lanes.get(priority) or tally_inbox.no_lane(priority, message)
            try:
                value = message.words
                box = Box(codec_Count, encode(value)) if type(value) is int else seal_Count(message)
            except BoxError:
                raise
            except Exception:
                box = seal_Count(message)
            if lane.offer(box):
                return True
            lane.check(box, message)
            return lane.put_now(box, message)
        if kind is Report and priority is None and overflow is None:
            try:
                value = message.total
                box = Box(codec_Report, encode(value)) if type(value) is int else seal_Report(message)
            except BoxError:
                raise
            except Exception:
                box = seal_Report(message)
            if ledger_normal.offer(box):
                return True
            ledger_normal.check(box, message)
            return ledger_normal.put_now(box, message)
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
        if type(message) is Box:
            codec = message.codec
            build, decode = codec.build, codec.decode
            message = build(decode(message.frame))
        elif message.__class__ in BOXES:
            message = message.codec.open(message)
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
        if type(message) is Box:
            codec = message.codec
            build, decode = codec.build, codec.decode
            message = build(decode(message.frame))
        elif message.__class__ in BOXES:
            message = message.codec.open(message)
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


def keeper_outbox(post, inboxes, scheduler):
    """What keeper sends: nothing that is known beforehand."""

    async def send(message, priority=None, overflow=None):
        return await post.send(message, priority, overflow)

    def try_send(message, priority=None, overflow=None):
        return post.try_send(message, priority, overflow)

    return send, try_send


def keeper_worker(inbox, ctx, actor, part):
    """How keeper is served: straight from the ready-queue."""
    on_line = actor.on_line
    handle = actor.handle
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
            if type(message) is Box and message.codec is codec_Parcel:
                message = build_Parcel(decode_Parcel(message.frame))
            elif message.__class__ in BOXES:
                message = message.codec.open(message)
            kind = message.__class__
            if kind is Line:
                on_line(ctx, message)
            elif kind is Parcel:
                handle(ctx, message)
            else:
                part.handle_other(ctx, message)
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
                    if type(message) is Box and message.codec is codec_Parcel:
                        message = build_Parcel(decode_Parcel(message.frame))
                    elif message.__class__ in BOXES:
                        message = message.codec.open(message)
                    kind = message.__class__
                    if kind is Line:
                        on_line(ctx, message)
                    elif kind is Parcel:
                        handle(ctx, message)
                    else:
                        part.handle_other(ctx, message)
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


def tally_outbox(post, inboxes, scheduler):
    """What tally sends: nothing that is known beforehand."""

    async def send(message, priority=None, overflow=None):
        return await post.send(message, priority, overflow)

    def try_send(message, priority=None, overflow=None):
        return post.try_send(message, priority, overflow)

    return send, try_send


def tally_worker(inbox, ctx, actor, part):
    """How tally is served: as a coroutine that parks."""
    handle = as_coroutine(actor.handle)
    on_signal = as_coroutine(actor.on_signal)
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
                        yield from on_signal(ctx, signal)
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
                if type(message) is Box and message.codec is codec_Count:
                    message = Count(decode_Count(message.frame))
                elif message.__class__ in BOXES:
                    message = message.codec.open(message)
                yield from handle(ctx, message)
                message = None
        except BaseException:
            inbox.current = message
            raise

    def taken():
        return high_taken, normal_taken

    return serve, taken


def ledger_outbox(post, inboxes, scheduler):
    """What ledger sends from its thread: nothing that is known beforehand."""
    home = post.home

    def send(message, priority=None, overflow=None):
        if get_ident() != home.ident:
            home.refuse()
        return post.send_in_thread(message, priority, overflow)

    def try_send(message, priority=None, overflow=None):
        if get_ident() != home.ident:
            home.refuse()
        return post.try_send(message, priority, overflow)

    return send, try_send


def ledger_worker(inbox, ctx, actor, part):
    """How ledger is served: in a thread of its own."""
    handle = actor.handle
    on_signal = actor.on_signal
    signals = inbox.signals
    (normal,) = inbox.lanes
    normal_queue = normal.queue
    normal_taken = 0

    def serve():
        nonlocal normal_taken
        message = None
        try:
            while True:
                message = None
                try:
                    if normal_queue and not signals:
                        message = normal_queue.popleft()
                        normal_taken += 1
                        if normal.pressed:
                            normal.relieve()
                except IndexError:
                    continue  # a stop has taken it away
                if message is not None:
                    if type(message) is Box and message.codec is codec_Report:
                        message = Report(decode_Report(message.frame))
                    elif message.__class__ in BOXES:
                        message = message.codec.open(message)
                    handle(ctx, message)
                elif signals:
                    signal = inbox.take_signal()
                    if signal is not None:
                        on_signal(ctx, signal)
                elif not inbox.sleep():
                    return
        except BaseException:
            inbox.current = message
            raise

    def taken():
        return (normal_taken,)

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
            if type(message) is Box and message.codec is codec_Parcel:
                message = build_Parcel(decode_Parcel(message.frame))
            elif message.__class__ in BOXES:
                message = message.codec.open(message)
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
                    if type(message) is Box and message.codec is codec_Parcel:
                        message = build_Parcel(decode_Parcel(message.frame))
                    elif message.__class__ in BOXES:
                        message = message.codec.open(message)
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
    """What the outside sends: Line to keeper, Parcel to keeper and log, Count to tally, Report to ledger."""
    keeper_inbox = inboxes["keeper"]
    keeper_normal = keeper_inbox.by_priority[NORMAL]
    log_inbox = inboxes["log"]
    log_normal = log_inbox.by_priority[NORMAL]
    log_normal_queue = log_normal.queue
    tally_inbox = inboxes["tally"]
    tally_lanes = tally_inbox.by_priority
    tally_normal = tally_inbox.by_priority[NORMAL]
    ledger_inbox = inboxes["ledger"]
    ledger_normal = ledger_inbox.by_priority[NORMAL]

    async def send(message, priority=None, overflow=None):
        kind = type(message)
        if kind is Line and priority is None and overflow is None:
            if keeper_normal.offer(message):
                return True
            return await keeper_normal.put(message, message)
        if kind is Parcel and priority is None and overflow is None:
            box = seal_Parcel(message)
            keeper_normal.check(box, message)
            taken, late = True, ()
            if not keeper_normal.offer(box):
                late += ((keeper_normal, box),)
            if len(log_normal_queue) < log_normal.room:
                log_normal_queue.append(box)
                if log_inbox.idle:
                    log_inbox.idle = False
                    scheduler.ready.append(log_inbox.work)
                    if not scheduler.awake:
                        scheduler.rise()
            else:
                late += ((log_normal, box),)
            if late:
                others = len(late) < 2
                return await post.spread(post.living(late, 2), message, others=others) and taken
            return taken
        if kind is Count and overflow is None:
            if priority is None:
                lane = tally_normal
            else:
                lane = tally_lanes.get(priority) or tally_inbox.no_lane(priority, message)
            try:
                value = message.words
                box = Box(codec_Count, encode(value)) if type(value) is int else seal_Count(message)
            except BoxError:
                raise
            except Exception:
                box = seal_Count(message)
            if lane.offer(box):
                return True
            lane.check(box, message)
            return await lane.put(box, message)
        if kind is Report and priority is None and overflow is None:
            try:
                value = message.total
                box = Box(codec_Report, encode(value)) if type(value) is int else seal_Report(message)
            except BoxError:
                raise
            except Exception:
                box = seal_Report(message)
            if ledger_normal.offer(box):
                return True
            ledger_normal.check(box, message)
            return await ledger_normal.put(box, message)
        return await post.send(message, priority, overflow)

    def try_send(message, priority=None, overflow=None):
        kind = type(message)
        if kind is Line and priority is None and overflow is None:
            if keeper_normal.offer(message):
                return True
            return keeper_normal.put_now(message, message)
        if kind is Parcel and priority is None and overflow is None:
            box = seal_Parcel(message)
            keeper_normal.check(box, message)
            taken, late = True, ()
            if not keeper_normal.offer(box):
                late += ((keeper_normal, box),)
            if len(log_normal_queue) < log_normal.room:
                log_normal_queue.append(box)
                if log_inbox.idle:
                    log_inbox.idle = False
                    scheduler.ready.append(log_inbox.work)
                    if not scheduler.awake:
                        scheduler.rise()
            else:
                late += ((log_normal, box),)
            if late:
                return post.spread_now(post.living(late, 2), message) and taken
            return taken
        if kind is Count and overflow is None:
            if priority is None:
                lane = tally_normal
            else:
                lane = tally_lanes.get(priority) or tally_inbox.no_lane(priority, message)
            try:
                value = message.words
                box = Box(codec_Count, encode(value)) if type(value) is int else seal_Count(message)
            except BoxError:
                raise
            except Exception:
                box = seal_Count(message)
            if lane.offer(box):
                return True
            lane.check(box, message)
            return lane.put_now(box, message)
        if kind is Report and priority is None and overflow is None:
            try:
                value = message.total
                box = Box(codec_Report, encode(value)) if type(value) is int else seal_Report(message)
            except BoxError:
                raise
            except Exception:
                box = seal_Report(message)
            if ledger_normal.offer(box):
                return True
            ledger_normal.check(box, message)
            return ledger_normal.put_now(box, message)
        return post.try_send(message, priority, overflow)

    return send, try_send
