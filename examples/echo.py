"""A server over TCP: one actor for a whole family of connections, asked by each, and free to write to all.

`Server` owns the sockets. It accepts connections, and for each spawns a task that reads lines and asks
the `Room` about them: a line is one ask, and its reply is written back. `Room` is an `Actor`, so it
handles one line at a time and needs no lock for what it keeps about all connections.

When a connection opens, the room is given a recipient for it: a small sending handle that travels in the
message. With it the room can write to any connection at any time, without declaring that it sends
anything. A line `/all words` goes to everybody so, and `/count` is answered with the number of lines so far.

    python -m examples.echo --port 7007       then, elsewhere:  nc 127.0.0.1 7007
"""

import argparse
import asyncio
from collections.abc import Callable

import msgspec

from orchestra import Actor, Context, Live, Recipient, Reply, Running, Subsystem, orchestra, run, subsystem


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
    """Accepts connections on 127.0.0.1; `listening` is set when it does, and then `port` is the real one."""

    def __init__(self, port: int = 0) -> None:
        self.port = port
        self.listening = asyncio.Event()
        self.writers: dict[int, asyncio.StreamWriter] = {}

    async def run(self, ctx: Context[Write, ToRoom, Halt]) -> None:
        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            ctx.spawn(self._serve(ctx, reader, writer))

        server = await asyncio.start_server(accept, "127.0.0.1", self.port)
        self.port = server.sockets[0].getsockname()[1]
        self.listening.set()
        try:
            async for item in ctx:
                if isinstance(item, Write) and (writer := self.writers.get(item.connection)) is not None:
                    writer.write(f"{item.line}\n".encode())
        finally:
            server.close()
            for writer in self.writers.values():
                writer.close()

    async def _serve(
        self, ctx: Context[Write, ToRoom, Halt], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """One connection, from its first line to its last."""
        connection = writer.get_extra_info("peername")[1]
        self.writers[connection] = writer
        await ctx.send(Opened(connection, ctx.recipient(Write)))
        try:
            while line := await reader.readline():
                said = line.decode(errors="replace").rstrip("\r\n")
                answer = await ctx.ask(_saying(connection, said), timeout=5)
                writer.write(f"{answer}\n".encode())
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            del self.writers[connection]
            writer.close()
        await ctx.send(Gone(connection))


def _saying(connection: int, line: str) -> Callable[[Reply[str]], Said]:
    return lambda reply: Said(connection, line, reply)


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
        "--port", type=int, default=7007, help="where to listen on 127.0.0.1; 0: any free one"
    )
    app = echo(parser.parse_args().port)

    async def serve(running: Running) -> None:
        await app.server.listening.wait()
        print(f"listening on 127.0.0.1:{app.server.port}; end it with Ctrl-C", flush=True)
        await running.wait()

    run(app, serve)


if __name__ == "__main__":
    main()
