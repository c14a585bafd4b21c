# SPDX-License-Identifier: Apache-2.0
"""A line with a round trip of its own between clients and a server, as a proxy: it needs no root.

It listens at `near` and carries each connection on to the same port of `far`. Bytes arrive half a round trip later,
and the first of them a whole round trip after that: TCP opens so. `reset` breaks connections at both ends at once, as
a router does that has forgotten them.
"""

import asyncio
import socket
import struct
import threading
import time


class Pair:
    """The two connections of one that the line carries."""

    def __init__(self, writers):
        self.writers = writers
        self.carried = 0


class DistantLine:
    def __init__(self, near, far, ports, round_trip):
        self.near, self.far, self.round_trip = near, far, round_trip
        self.pairs = {port: [] for port in ports}
        self.servers = []
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        self._call(self._listen())

    def _run(self):
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        tasks = asyncio.all_tasks(self.loop)
        for task in tasks:
            task.cancel()
        self.loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self.loop.close()

    def _call(self, what):
        return asyncio.run_coroutine_threadsafe(what, self.loop).result(10)

    def end(self):
        self._call(self._stop_listening())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)

    async def _listen(self):
        for port in self.pairs:
            carry = lambda r, w, port=port: self._carry_until_the_end(port, r, w)  # noqa: E731
            self.servers.append(await asyncio.start_server(carry, self.near, port))

    async def _stop_listening(self):
        for server in self.servers:
            server.close()

    async def _carry_until_the_end(self, port, reader, writer):
        try:
            await self._carry(port, reader, writer)
        except asyncio.CancelledError:
            pass  # the line ends; a task that ends as cancelled would make asyncio print its traces

    async def _carry(self, port, reader, writer):
        await asyncio.sleep(self.round_trip)
        try:
            onward_reader, onward_writer = await asyncio.open_connection(self.far, port)
        except OSError:
            writer.transport.abort()
            return
        pair = Pair((writer, onward_writer))
        self.pairs[port].append(pair)
        await asyncio.gather(self._one_way(pair, reader, onward_writer), self._one_way(pair, onward_reader, writer))
        self.pairs[port].remove(pair)

    async def _one_way(self, pair, reader, writer):
        due = asyncio.Queue()
        sending = asyncio.create_task(self._send(due, writer))
        try:
            while data := await reader.read(1 << 16):
                pair.carried += len(data)
                due.put_nowait((time.monotonic() + self.round_trip / 2, data))
        except OSError:
            pass
        due.put_nowait((time.monotonic() + self.round_trip / 2, None))
        await sending

    @staticmethod
    async def _send(due, writer):
        while True:
            when, data = await due.get()
            await asyncio.sleep(max(0.0, when - time.monotonic()))
            try:
                if data is None:
                    writer.close()
                    return
                writer.write(data)
                await writer.drain()
            except OSError:
                return

    def reset(self, port):
        """Breaks the connection to that port that has carried most, so none of a few questions; False: there is none."""
        return self._call(self._reset(port))

    async def _reset(self, port):
        if not self.pairs[port]:
            return False
        for writer in max(self.pairs[port], key=lambda pair: pair.carried).writers:
            # With a linger of 0 s the kernel sends RST.
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        return True
