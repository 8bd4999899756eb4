"""A proxy that delays what passes: delay.py PORT MILLISECONDS, which prints its own port.

Each direction of a connection is late by that time, and loses no throughput: a round trip takes twice the time longer.
It shares the machine with what is measured, so pieces are large and not copied."""
import asyncio
import collections
import sys

TARGET, DELAY = int(sys.argv[1]), float(sys.argv[2]) / 1000
PIECE, MOST = 1 << 20, 16 << 20  # bytes read at once, and bytes that wait in a direction until the next are read


class Direction(asyncio.BufferedProtocol):
    """Takes what one side sends, and gives it to the other when it is due."""

    def __init__(self):
        self.pieces, self.n_waiting = collections.deque(), 0
        self.transport, self.there, self.buffer = None, None, None

    def connection_made(self, transport):
        self.transport = transport

    def get_buffer(self, _):
        self.buffer = bytearray(PIECE)
        return self.buffer

    def buffer_updated(self, n):
        del self.buffer[n:]
        self.add(self.buffer)

    def add(self, piece):
        loop = asyncio.get_running_loop()
        self.pieces.append((loop.time() + DELAY, piece))
        self.n_waiting += len(piece)
        if self.n_waiting > MOST:
            self.transport.pause_reading()
        if len(self.pieces) == 1:
            loop.call_at(self.pieces[0][0], self.give)

    def give(self):
        loop = asyncio.get_running_loop()
        while self.pieces and self.pieces[0][0] <= loop.time():
            piece = self.pieces.popleft()[1]
            if not piece:
                self.there.transport.close()
                return
            self.n_waiting -= len(piece)
            self.there.transport.write(piece)
        if self.n_waiting <= MOST:
            self.transport.resume_reading()
        if self.pieces:
            loop.call_at(self.pieces[0][0], self.give)

    def eof_received(self):
        self.add(b"")
        return True

    def connection_lost(self, _):
        if self.there is not None:
            self.there.transport.close()


class Client(Direction):
    def connection_made(self, transport):
        super().connection_made(transport)
        transport.pause_reading()
        asyncio.get_running_loop().create_task(self.connect())

    async def connect(self):
        try:
            _, self.there = await asyncio.get_running_loop().create_connection(Direction, "127.0.0.1", TARGET)
        except OSError:
            self.transport.close()
            return
        self.there.there = self
        self.transport.resume_reading()


async def main():
    server = await asyncio.get_running_loop().create_server(Client, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
