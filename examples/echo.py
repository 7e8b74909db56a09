"""A server over TCP: one actor for a whole family of connections, asked by each, and free to write to all.

`Server` owns the sockets. It accepts connections, and for each spawns a task that reads lines and asks
the `Room` about them: a line is one ask, and its reply is written back. `Room` is an `Actor`, so it
handles one line at a time and needs no lock for what it keeps about all connections.

When a connection opens, the room is given a recipient for it: a small sending handle that travels in the
message. With it the room can write to any connection at any time, without declaring that it sends
anything. A line `/all words` goes to everybody so, and `/count` is answered with the number of lines so far.

What a client does wrong is its own harm. One that breaks off, or whose line is too long, ends its task and
nothing else. One that does not read is waited for by its own task; what the others say to it is kept up to
`BACKLOG` bytes, and then it is cut off.

    python -m examples.echo --port 7007       then, elsewhere:  nc 127.0.0.1 7007
"""

import argparse
import asyncio
import itertools
import sys
from functools import partial

import msgspec

from orchestra import (
    Actor,
    Context,
    Live,
    OrchestraError,
    Recipient,
    Reply,
    Running,
    Subsystem,
    orchestra,
    run,
    subsystem,
)

HOST = "127.0.0.1"

LONGEST = 4096
"""Bytes of a line, at most."""

BACKLOG = 64 * 1024
"""Bytes that may wait for a client that does not read them."""


class Write(msgspec.Struct, frozen=True):
    """Write a line to one connection."""

    connection: int
    line: str


class Opened(msgspec.Struct, frozen=True):
    connection: int
    writes: Live[Recipient[Write]]


class Said(msgspec.Struct, frozen=True):
    """A line came in; the reply is what is to be written back."""

    connection: int
    line: str
    reply: Reply[str]


class Gone(msgspec.Struct, frozen=True):
    connection: int


class Halt(msgspec.Struct, frozen=True):
    """Every orchestra names a signal and an event; these two get by without."""


ToRoom = Opened | Said | Gone


class Server(Subsystem[Write, ToRoom]):
    """Accepts connections; `listening` is set when it does, and then `port` is the real one."""

    def __init__(self, port: int = 0) -> None:
        self.port = port
        self.listening = asyncio.Event()
        self.writers: dict[int, asyncio.StreamWriter] = {}
        self._numbers = itertools.count(1)

    async def run(self, ctx: Context[Write, ToRoom, Halt]) -> None:
        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            ctx.spawn(self._serve(ctx, reader, writer))

        server = await asyncio.start_server(accept, HOST, self.port, limit=LONGEST)
        self.port = server.sockets[0].getsockname()[1]
        self.listening.set()
        try:
            async for item in ctx:
                if isinstance(item, Write) and (writer := self.writers.get(item.connection)) is not None:
                    _write_or_cut_off(writer, item.line)
        finally:
            server.close()
            for writer in self.writers.values():
                _hang_up(writer)

    async def _serve(
        self, ctx: Context[Write, ToRoom, Halt], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """One connection, from its first line to its last."""
        connection = next(self._numbers)
        self.writers[connection] = writer
        try:
            await ctx.send(Opened(connection, ctx.recipient(Write)))
            while (line := await _line(reader)) is not None:
                answer = await ctx.ask(partial(Said, connection, line), timeout=5)
                if not await _write(writer, answer):
                    break
        finally:
            del self.writers[connection]
            _hang_up(writer)
        await ctx.send(Gone(connection))


async def _line(reader: asyncio.StreamReader) -> str | None:
    """The next line; None at the end, when the connection breaks, and for a line that is too long."""
    try:
        line = await reader.readline()
    except (OSError, ValueError):  # ValueError is how readline tells of a line over the limit
        return None
    return line.decode(errors="replace").rstrip("\r\n") if line else None


async def _write(writer: asyncio.StreamWriter, line: str) -> bool:
    """Write a line, and wait while the client does not read; False when the connection is broken."""
    try:
        writer.write(f"{line}\n".encode())
        await writer.drain()
    except OSError:
        return False
    return True


def _write_or_cut_off(writer: asyncio.StreamWriter, line: str) -> None:
    """Write a line without waiting, to a client that may not read."""
    if writer.transport.get_write_buffer_size() > BACKLOG:
        writer.transport.abort()
    else:
        writer.write(f"{line}\n".encode())


def _hang_up(writer: asyncio.StreamWriter) -> None:
    """Close a connection without waiting for a client that does not read."""
    if writer.transport.get_write_buffer_size():
        writer.transport.abort()
    else:
        writer.close()


class Room(Actor[ToRoom]):
    """Knows every connection, and answers what they say."""

    def __init__(self) -> None:
        self.there: dict[int, Recipient[Write]] = {}
        self.lines = 0

    async def handle(self, ctx: Context[ToRoom], message: ToRoom) -> None:
        match message:
            case Opened(connection=connection, writes=writes):
                self.there[connection] = writes
            case Gone(connection=connection):
                del self.there[connection]
            case Said(connection=connection, line=line, reply=reply):
                self.lines += 1
                reply.send(await self._answer(connection, line))

    async def _answer(self, connection: int, line: str) -> str:
        if line == "/count":
            return f"{self.lines} lines"
        if not line.startswith("/all "):
            return line
        others = {each: writes for each, writes in self.there.items() if each != connection}
        for each, writes in others.items():
            await writes.send(Write(each, line.removeprefix("/all ")))
        return f"told {len(others)} others"


@orchestra(signal=Halt, event=Halt)
class Echo:
    server: Server = subsystem()
    room: Room = subsystem()


def echo(port: int = 0) -> Echo:
    """The orchestra, ready to run; port 0 takes a free one."""
    return Echo(server=Server(port), room=Room())


def main() -> None:
    """Serve until Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m examples.echo", description="An echo server over TCP.")
    parser.add_argument(
        "--port", type=_port, default=7007, help=f"where to listen on {HOST}; 0: any free one (default: 7007)"
    )
    app = echo(parser.parse_args().port)

    async def serve(running: Running) -> None:
        await app.server.listening.wait()
        print(f"listening on {HOST}:{app.server.port}; end it with Ctrl-C", flush=True)
        await running.wait()

    try:
        run(app, serve, dead_letters=lambda letter: None)  # at the end there are lines for nobody
    except OrchestraError as error:
        if not isinstance(error.__cause__, OSError):
            raise
        sys.exit(f"echo: {error.__cause__.strerror}")


def _port(text: str) -> int:
    if text.isdecimal() and int(text) <= 65535:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no port: give a number from 0 to 65535")


if __name__ == "__main__":
    main()
