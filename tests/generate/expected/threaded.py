# ruff: noqa: F821, F841, RET508, RUF100
# fmt: off
# Renewed by: UPDATE_EXPECTED=1 python -m pytest tests/generate/test_source.py

"""Wiring of tests.generate.declarations.Threaded, generated from its declaration."""


def reader_outbox(post, inboxes, scheduler):
    """What reader sends: Line to disk."""
    disk_inbox = inboxes["disk"]
    disk_acquire = disk_inbox.lock.acquire
    disk_release = disk_inbox.lock.release
    disk_normal = disk_inbox.by_priority[NORMAL]
    disk_normal_queue = disk_normal.queue

    async def send(message, priority=None, overflow=None):
        kind = message.__class__
        if kind is Line and priority is None and overflow is None:
            disk_acquire()
            try:
                if len(disk_normal_queue) < disk_normal.room:
                    disk_normal_queue.append(message)
                    if disk_inbox.idle:
                        disk_inbox.wake()
                    return True
            finally:
                disk_release()
            return await disk_normal.put(message, message)
        return await post.send(message, priority, overflow)

    def try_send(message, priority=None, overflow=None):
        kind = message.__class__
        if kind is Line and priority is None and overflow is None:
            disk_acquire()
            try:
                if len(disk_normal_queue) < disk_normal.room:
                    disk_normal_queue.append(message)
                    if disk_inbox.idle:
                        disk_inbox.wake()
                    return True
            finally:
                disk_release()
            return disk_normal.put_now(message, message)
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


def disk_outbox(post, inboxes, scheduler):
    """What disk sends from its thread: Count to ledger, Report to ledger and total and counter."""
    home = post.home
    ledger_inbox = inboxes["ledger"]
    ledger_acquire = ledger_inbox.lock.acquire
    ledger_release = ledger_inbox.lock.release
    ledger_normal = ledger_inbox.by_priority[NORMAL]
    ledger_normal_queue = ledger_normal.queue
    total_inbox = inboxes["total"]
    total_acquire = total_inbox.lock.acquire
    total_release = total_inbox.lock.release
    total_normal = total_inbox.by_priority[NORMAL]
    total_normal_queue = total_normal.queue
    counter_inbox = inboxes["counter"]
    counter_acquire = counter_inbox.lock.acquire
    counter_release = counter_inbox.lock.release
    counter_normal = counter_inbox.by_priority[NORMAL]
    counter_normal_queue = counter_normal.queue

    def send(message, priority=None, overflow=None):
        if get_ident() != home.ident:
            home.refuse()
        kind = message.__class__
        if kind is Count and priority is None and overflow is None:
            ledger_acquire()
            try:
                if len(ledger_normal_queue) < ledger_normal.room:
                    ledger_normal_queue.append(message)
                    if ledger_inbox.idle:
                        ledger_inbox.wake()
                    return True
            finally:
                ledger_release()
            return ledger_normal.put_in_thread(message, message)
        if kind is Report and priority is None and overflow is None:
            taken, late = True, ()
            ledger_acquire()
            try:
                if len(ledger_normal_queue) < ledger_normal.room:
                    ledger_normal_queue.append(message)
                    if ledger_inbox.idle:
                        ledger_inbox.wake()
                elif ledger_normal.displaces:
                    ledger_normal_queue.popleft()
                    ledger_normal_queue.append(message)
                    ledger_normal.displaced += 1
                else:
                    late += ((ledger_normal, message),)
            finally:
                ledger_release()
            total_acquire()
            try:
                if total_normal.congested:
                    total_normal.early += 1
                    taken = False
                elif len(total_normal_queue) < total_normal.room:
                    total_normal_queue.append(message)
                    if total_inbox.idle:
                        total_inbox.wake()
                else:
                    late += ((total_normal, message),)
            finally:
                total_release()
            counter_acquire()
            try:
                if len(counter_normal_queue) < counter_normal.room:
                    counter_normal_queue.append(message)
                    if counter_inbox.idle:
                        counter_inbox.wake()
                else:
                    late += ((counter_normal, message),)
            finally:
                counter_release()
            if late:
                others = len(late) < 3
                return post.spread_in_thread(post.living(late, 3), message, others=others) and taken
            return taken
        return post.send_in_thread(message, priority, overflow)

    def try_send(message, priority=None, overflow=None):
        if get_ident() != home.ident:
            home.refuse()
        kind = message.__class__
        if kind is Count and priority is None and overflow is None:
            ledger_acquire()
            try:
                if len(ledger_normal_queue) < ledger_normal.room:
                    ledger_normal_queue.append(message)
                    if ledger_inbox.idle:
                        ledger_inbox.wake()
                    return True
            finally:
                ledger_release()
            return ledger_normal.put_now(message, message)
        if kind is Report and priority is None and overflow is None:
            taken, late = True, ()
            ledger_acquire()
            try:
                if len(ledger_normal_queue) < ledger_normal.room:
                    ledger_normal_queue.append(message)
                    if ledger_inbox.idle:
                        ledger_inbox.wake()
                elif ledger_normal.displaces:
                    ledger_normal_queue.popleft()
                    ledger_normal_queue.append(message)
                    ledger_normal.displaced += 1
                else:
                    late += ((ledger_normal, message),)
            finally:
                ledger_release()
            total_acquire()
            try:
                if total_normal.congested:
                    total_normal.early += 1
                    taken = False
                elif len(total_normal_queue) < total_normal.room:
                    total_normal_queue.append(message)
                    if total_inbox.idle:
                        total_inbox.wake()
                else:
                    late += ((total_normal, message),)
            finally:
                total_release()
            counter_acquire()
            try:
                if len(counter_normal_queue) < counter_normal.room:
                    counter_normal_queue.append(message)
                    if counter_inbox.idle:
                        counter_inbox.wake()
                else:
                    late += ((counter_normal, message),)
            finally:
                counter_release()
            if late:
                return post.spread_now(post.living(late, 3), message) and taken
            return taken
        return post.try_send(message, priority, overflow)

    return send, try_send


def disk_receiver(inbox):
    """How disk receives in its thread: signals, then Line (normal)."""
    home = inbox.home
    signals = inbox.signals
    (normal,) = inbox.lanes
    normal_queue = normal.queue
    normal_taken = 0

    def following(wait=True):
        nonlocal normal_taken
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
                inbox.current = message
                return message
            if signals:
                return inbox.take_signal()
            if not wait:
                return inbox.nothing()
            if not inbox.sleep():
                raise StopIteration

    def recv():
        if get_ident() != home.ident:
            home.refuse()
        try:
            return following()
        except StopIteration:
            return inbox.tell_end()

    def try_recv():
        if get_ident() != home.ident:
            home.refuse()
        return following(wait=False)

    def recv_signal():
        if get_ident() != home.ident:
            home.refuse()
        while not signals:
            inbox.sleep_for_signal()
        return inbox.take_signal()

    def taken():
        return (normal_taken,)

    return recv, try_recv, recv_signal, following, taken


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
    lock = inbox.lock
    (normal,) = inbox.lanes
    normal_queue = normal.queue
    normal_taken = 0

    def serve():
        nonlocal normal_taken
        message = None
        try:
            while True:
                message = None
                with lock:
                    if normal_queue and not signals:
                        message = normal_queue.popleft()
                        normal_taken += 1
                        if normal.pressed:
                            normal.relieve()
                if message is not None:
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


def total_outbox(post, inboxes, scheduler):
    """What total sends: nothing that is known beforehand."""

    async def send(message, priority=None, overflow=None):
        return await post.send(message, priority, overflow)

    def try_send(message, priority=None, overflow=None):
        return post.try_send(message, priority, overflow)

    return send, try_send


def total_worker(inbox, ctx, actor, part):
    """How total is served: as a coroutine that parks."""
    handle = as_coroutine(actor.handle)
    on_signal = as_coroutine(actor.on_signal)
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
                    if signal is not None:
                        yield from on_signal(ctx, signal)
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
                if message is None:
                    if inbox.over:
                        return
                    if inbox.sleeps():
                        yield parked
                    continue
                yield from handle(ctx, message)
                message = None
        except BaseException:
            inbox.current = message
            raise

    def taken():
        return (allowed - left,)

    return serve, taken


def counter_outbox(post, inboxes, scheduler):
    """What counter sends: nothing that is known beforehand."""

    async def send(message, priority=None, overflow=None):
        return await post.send(message, priority, overflow)

    def try_send(message, priority=None, overflow=None):
        return post.try_send(message, priority, overflow)

    return send, try_send


def counter_worker(inbox, ctx, actor, part):
    """How counter is served: straight from the ready-queue."""
    handle = actor.handle
    signals = inbox.signals
    (normal,) = inbox.lanes
    normal_queue = normal.queue
    normal_taken = 0

    def work():
        nonlocal normal_taken
        budget = whole = inbox.scheduler.left() + 1
        allowed = budget
        try:
            while budget:
                if signals:
                    message = None
                    inbox.take_signal()
                    continue
                if normal_queue:
                    message = normal_queue.popleft()
                    budget -= 1
                else:
                    break
                handle(ctx, message)
        except BaseException as error:
            normal_taken += allowed - budget
            return part.broke(error, message)
        normal_taken += allowed - budget
        if normal.pressed:
            normal.relieve()
        if not budget:
            part.again()
        elif inbox.over:
            part.served()
        elif not inbox.sleeps():
            part.again()
        return whole - budget - 1

    def taken():
        return (normal_taken,)

    return work, taken


def outside_outbox(post, inboxes, scheduler):
    """What the outside sends: Line to disk, Count to ledger, Report to ledger and total and counter."""
    disk_inbox = inboxes["disk"]
    disk_acquire = disk_inbox.lock.acquire
    disk_release = disk_inbox.lock.release
    disk_normal = disk_inbox.by_priority[NORMAL]
    disk_normal_queue = disk_normal.queue
    ledger_inbox = inboxes["ledger"]
    ledger_acquire = ledger_inbox.lock.acquire
    ledger_release = ledger_inbox.lock.release
    ledger_normal = ledger_inbox.by_priority[NORMAL]
    ledger_normal_queue = ledger_normal.queue
    total_inbox = inboxes["total"]
    total_acquire = total_inbox.lock.acquire
    total_release = total_inbox.lock.release
    total_normal = total_inbox.by_priority[NORMAL]
    total_normal_queue = total_normal.queue
    counter_inbox = inboxes["counter"]
    counter_acquire = counter_inbox.lock.acquire
    counter_release = counter_inbox.lock.release
    counter_normal = counter_inbox.by_priority[NORMAL]
    counter_normal_queue = counter_normal.queue

    async def send(message, priority=None, overflow=None):
        kind = message.__class__
        if kind is Line and priority is None and overflow is None:
            disk_acquire()
            try:
                if len(disk_normal_queue) < disk_normal.room:
                    disk_normal_queue.append(message)
                    if disk_inbox.idle:
                        disk_inbox.wake()
                    return True
            finally:
                disk_release()
            return await disk_normal.put(message, message)
        if kind is Count and priority is None and overflow is None:
            ledger_acquire()
            try:
                if len(ledger_normal_queue) < ledger_normal.room:
                    ledger_normal_queue.append(message)
                    if ledger_inbox.idle:
                        ledger_inbox.wake()
                    return True
            finally:
                ledger_release()
            return await ledger_normal.put(message, message)
        if kind is Report and priority is None and overflow is None:
            taken, late = True, ()
            ledger_acquire()
            try:
                if len(ledger_normal_queue) < ledger_normal.room:
                    ledger_normal_queue.append(message)
                    if ledger_inbox.idle:
                        ledger_inbox.wake()
                elif ledger_normal.displaces:
                    ledger_normal_queue.popleft()
                    ledger_normal_queue.append(message)
                    ledger_normal.displaced += 1
                else:
                    late += ((ledger_normal, message),)
            finally:
                ledger_release()
            total_acquire()
            try:
                if total_normal.congested:
                    total_normal.early += 1
                    taken = False
                elif len(total_normal_queue) < total_normal.room:
                    total_normal_queue.append(message)
                    if total_inbox.idle:
                        total_inbox.wake()
                else:
                    late += ((total_normal, message),)
            finally:
                total_release()
            counter_acquire()
            try:
                if len(counter_normal_queue) < counter_normal.room:
                    counter_normal_queue.append(message)
                    if counter_inbox.idle:
                        counter_inbox.wake()
                else:
                    late += ((counter_normal, message),)
            finally:
                counter_release()
            if late:
                others = len(late) < 3
                return await post.spread(post.living(late, 3), message, others=others) and taken
            return taken
        return await post.send(message, priority, overflow)

    def try_send(message, priority=None, overflow=None):
        kind = message.__class__
        if kind is Line and priority is None and overflow is None:
            disk_acquire()
            try:
                if len(disk_normal_queue) < disk_normal.room:
                    disk_normal_queue.append(message)
                    if disk_inbox.idle:
                        disk_inbox.wake()
                    return True
            finally:
                disk_release()
            return disk_normal.put_now(message, message)
        if kind is Count and priority is None and overflow is None:
            ledger_acquire()
            try:
                if len(ledger_normal_queue) < ledger_normal.room:
                    ledger_normal_queue.append(message)
                    if ledger_inbox.idle:
                        ledger_inbox.wake()
                    return True
            finally:
                ledger_release()
            return ledger_normal.put_now(message, message)
        if kind is Report and priority is None and overflow is None:
            taken, late = True, ()
            ledger_acquire()
            try:
                if len(ledger_normal_queue) < ledger_normal.room:
                    ledger_normal_queue.append(message)
                    if ledger_inbox.idle:
                        ledger_inbox.wake()
                elif ledger_normal.displaces:
                    ledger_normal_queue.popleft()
                    ledger_normal_queue.append(message)
                    ledger_normal.displaced += 1
                else:
                    late += ((ledger_normal, message),)
            finally:
                ledger_release()
            total_acquire()
            try:
                if total_normal.congested:
                    total_normal.early += 1
                    taken = False
                elif len(total_normal_queue) < total_normal.room:
                    total_normal_queue.append(message)
                    if total_inbox.idle:
                        total_inbox.wake()
                else:
                    late += ((total_normal, message),)
            finally:
                total_release()
            counter_acquire()
            try:
                if len(counter_normal_queue) < counter_normal.room:
                    counter_normal_queue.append(message)
                    if counter_inbox.idle:
                        counter_inbox.wake()
                else:
                    late += ((counter_normal, message),)
            finally:
                counter_release()
            if late:
                return post.spread_now(post.living(late, 3), message) and taken
            return taken
        return post.try_send(message, priority, overflow)

    return send, try_send
