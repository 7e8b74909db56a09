"""The echo server over real sockets of 127.0.0.1."""

import asyncio
import contextlib
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from examples.echo import BACKLOG, LONGEST, Echo, Server, echo
from orchestra import start

ROOT = Path(__file__).parents[2]


class Client:
    """A connection of a test."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def of(cls, server: Server) -> "Client":
        await server.listening.wait()
        return cls(*await asyncio.open_connection("127.0.0.1", server.port))

    async def say(self, line: str) -> str:
        self.writer.write(f"{line}\n".encode())
        return await self.hear()

    async def say_only(self, line: str) -> bool:
        """Say something and do not listen."""
        self.writer.write(f"{line}\n".encode())
        await self.writer.drain()
        return True

    async def hear(self) -> str:
        """The next line; an empty one when the server has hung up, perhaps on what it had not read."""
        try:
            return (await self.reader.readline()).decode().rstrip()
        except ConnectionError:
            return ""

    async def leave(self) -> None:
        self.writer.close()
        with contextlib.suppress(ConnectionError):
            await self.writer.wait_closed()


def test_lines_come_back_and_the_room_may_write_to_all() -> None:
    async def main() -> None:
        app = echo()
        async with asyncio.timeout(20), start(app):
            ann, bob = await Client.of(app.server), await Client.of(app.server)
            assert await ann.say("hello") == "hello"
            assert await bob.say("good day") == "good day"
            assert await ann.say("/all lunch") == "told 1 others"
            assert await bob.hear() == "lunch"
            assert await bob.say("/count") == "4 lines"
            await bob.leave()
            while len(app.room.there) > 1:
                await asyncio.sleep(0.005)
            assert await ann.say("/all anybody?") == "told 0 others"
            stopping = ann.hear()
            await ann.leave()
            await stopping

    asyncio.run(main())


def test_an_open_connection_does_not_hold_up_the_stop() -> None:
    async def main() -> None:
        app = echo()
        async with asyncio.timeout(20):
            async with start(app) as running:
                ann = await Client.of(app.server)
                assert await ann.say("hello") == "hello"
                began = asyncio.get_running_loop().time()
                await running.stop(timeout=5)
                assert asyncio.get_running_loop().time() - began < 2
            assert await ann.hear() == ""
            await ann.leave()

    asyncio.run(main())


async def until_only(app: Echo, connections: int) -> None:
    """Wait until the room knows of so many connections."""
    while len(app.room.there) != connections:
        await asyncio.sleep(0.005)


def test_clients_that_break_off_or_talk_without_end_do_no_harm() -> None:
    async def main() -> None:
        app = echo()
        async with asyncio.timeout(20), start(app):
            ann = await Client.of(app.server)
            assert await ann.say("hello") == "hello"
            for _ in range(20):  # they reset the connection, some before it was accepted
                with socket.create_connection(("127.0.0.1", app.server.port)) as rude:
                    rude.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            bob = await Client.of(app.server)
            bob.writer.write(b"x" * (2 * LONGEST + 1))
            assert await bob.hear() == ""
            carl = await Client.of(app.server)
            carl.writer.write(b"in the middle of a li")
            carl.writer.write_eof()
            assert await carl.hear() == "in the middle of a li"
            assert await carl.hear() == ""
            assert await ann.say("/all still here?") == "told 0 others"
            await until_only(app, 1)
            for client in (ann, bob, carl):
                await client.leave()

    asyncio.run(main())


def test_a_client_that_does_not_read_is_cut_off_and_holds_up_nobody() -> None:
    async def main() -> None:
        app = echo()
        async with asyncio.timeout(30), start(app) as running:
            ann, deaf = await Client.of(app.server), await Client.of(app.server)
            deaf.writer.transport.pause_reading()
            assert await deaf.say_only("hello")
            words = "/all " + "x" * (LONGEST - 100)
            for _ in range(20_000):
                if (answer := await ann.say(words)) == "told 0 others":
                    break
                assert answer == "told 1 others"
            assert list(app.room.there) == [1]
            assert await ann.say("hello") == "hello"
            began = asyncio.get_running_loop().time()
            await running.stop(timeout=5)
            assert asyncio.get_running_loop().time() - began < 2
            deaf.writer.transport.abort()
            await ann.leave()

    asyncio.run(main())


def test_a_client_that_does_not_read_its_own_answers_does_not_hold_up_the_stop() -> None:
    async def main() -> None:
        app = echo()
        async with asyncio.timeout(30), start(app) as running:
            deaf = await Client.of(app.server)
            deaf.writer.transport.pause_reading()
            (server_side,) = await until_there(app.server)
            while server_side.transport.get_write_buffer_size() < BACKLOG // 2:
                deaf.writer.write(b"x" * 1000 + b"\n")
                await asyncio.sleep(0)
            began = asyncio.get_running_loop().time()
            await running.stop(timeout=5)
            assert asyncio.get_running_loop().time() - began < 2
            deaf.writer.transport.abort()

    asyncio.run(main())


async def until_there(server: Server) -> list[asyncio.StreamWriter]:
    """The connections of the server, as soon as there are any."""
    while not server.writers:
        await asyncio.sleep(0.005)
    return list(server.writers.values())


def program(*words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "examples.echo", *words],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


def test_the_program_ends_quietly_at_ctrl_c_and_tells_that_a_port_is_taken() -> None:
    with program("--port", "0") as serving:
        assert serving.stdout is not None
        line = serving.stdout.readline()
        port = line.partition("127.0.0.1:")[2].partition(";")[0]
        with socket.create_connection(("127.0.0.1", int(port))) as client:
            client.sendall(b"hello\n")
            assert client.recv(100) == b"hello\n"
            with program("--port", port) as second:
                out, errors = second.communicate(timeout=30)
            assert (second.returncode, out) == (1, "")
            assert errors.startswith("echo: ")
            assert "address already in use" in errors
            assert errors.count("\n") == 1
            serving.send_signal(signal.SIGINT)
            out, errors = serving.communicate(timeout=30)
        assert (serving.returncode, out, errors) == (0, "", "")


@pytest.mark.parametrize("port", ["65536", "-1", "http", "7.5", ""])
def test_a_port_that_is_none_is_refused(port: str) -> None:
    with program(f"--port={port}") as refused:
        _, errors = refused.communicate(timeout=30)
    assert refused.returncode == 2
    assert f"{port!r} is no port: give a number from 0 to 65535" in errors
