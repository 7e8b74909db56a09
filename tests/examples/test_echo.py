"""The echo server over real sockets of 127.0.0.1."""

import asyncio

from examples.echo import Server, echo
from orchestra import start


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

    async def hear(self) -> str:
        return (await self.reader.readline()).decode().rstrip()

    async def leave(self) -> None:
        self.writer.close()
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
