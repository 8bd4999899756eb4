"""A proxy that delays what passes: delay.py PORT MILLISECONDS, which prints its own port.

Each direction of a connection is late by that time, and loses no throughput: a round trip takes twice the time longer."""
import asyncio
import sys

TARGET, DELAY = int(sys.argv[1]), float(sys.argv[2]) / 1000
PIECE, MOST = 1 << 18, 256  # bytes in a piece, and pieces under way in a direction


async def take(reader, pieces):
    loop = asyncio.get_running_loop()
    while piece := await reader.read(PIECE):
        await pieces.put((loop.time() + DELAY, piece))
    await pieces.put((loop.time() + DELAY, b""))


async def give(pieces, writer):
    loop = asyncio.get_running_loop()
    while True:
        due, piece = await pieces.get()
        if due > loop.time():
            await asyncio.sleep(due - loop.time())
        if not piece:
            break
        writer.write(piece)
        await writer.drain()
    writer.close()


async def connect(reader, writer):
    there, back = asyncio.Queue(MOST), asyncio.Queue(MOST)
    try:
        distant_reader, distant_writer = await asyncio.open_connection("127.0.0.1", TARGET, limit=PIECE)
        await asyncio.gather(take(reader, there), give(there, distant_writer), take(distant_reader, back), give(back, writer))
    except OSError:  # one side has gone
        writer.close()


async def main():
    server = await asyncio.start_server(connect, "127.0.0.1", 0, limit=PIECE)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
