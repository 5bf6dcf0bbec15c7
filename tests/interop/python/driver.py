"""Has one MCP client library do what the runner asks, and says what it showed its user.

Reads one JSON command a line, prints one JSON line for each. A library's module has
`connected(url, headers)`, an asynchronous context that gives an object with these coroutines:
`tools()` gives names, `call(name, arguments, meta)` gives `{"text", "is_error"}`. What they raise is
what the library tells its user. `ABLE_TO_SEND_META` says whether a call can be given `_meta`.
"""

import asyncio
import contextlib
import importlib
import json
import logging
import sys

# No call that is not cancelled takes this long.
CALL_TIMEOUT_S = 20


def leaves(error):
    """The errors in a group of errors."""
    nested = getattr(error, "exceptions", None)
    return [error] if nested is None else [leaf for inner in nested for leaf in leaves(inner)]


def told(error):
    """An error as its user reads it."""
    code = getattr(getattr(error, "error", None), "code", None)
    return {"error": " | ".join(str(leaf) or repr(leaf) for leaf in leaves(error)), "code": code, "type": type(error).__name__}


class Driver:
    def __init__(self, library, lines):
        self.library = library
        self.lines = lines
        self.answered = True
        self.pending = None

    def answer(self, **fields):
        self.answered = True
        print(json.dumps(fields), flush=True)

    async def command(self):
        line = await self.lines.readline()
        self.answered = not line
        return json.loads(line) if line else {"do": "end"}

    async def run(self):
        command = await self.command()
        ended = None
        while command["do"] != "end":
            if command["do"] == "connect":
                command, ended = await self.connect(command)
                continue
            self.answer(**(ended or {"error": "the driver is not connected", "ended": True}))
            command = await self.command()

    async def connect(self, command):
        """Serves commands until the connection ends: the next command, and why it ended."""
        try:
            async with self.library.connected(command["url"], command["headers"]) as connection:
                self.answer(able_to_send_meta=self.library.ABLE_TO_SEND_META)
                following = await self.serve(connection)
        except BaseException as error:  # The library's own tasks end it with whatever they failed with.
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
            current = asyncio.current_task()
            while current.cancelling():
                current.uncancel()
            ended = {**told(error), "ended": True}
            if not self.answered:
                self.answer(**ended)
            return await self.command(), ended
        if following["do"] == "close":
            self.answer()
            following = await self.command()
        return following, None

    async def serve(self, connection):
        while True:
            command = await self.command()
            match command["do"]:
                case "tools":
                    self.answer(**await self.shown(self.tools(connection)))
                case "call":
                    self.answer(**await self.shown(self.call(connection, command)))
                case "begin":
                    self.pending = asyncio.ensure_future(self.call(connection, command))
                    await asyncio.sleep(0)
                    self.answer()
                case "abort":
                    # How a user of asyncio cancels what they wait for.
                    self.pending.cancel()
                    await asyncio.wait([self.pending], timeout=CALL_TIMEOUT_S)
                    self.answer()
                case _:
                    return command

    async def tools(self, connection):
        return {"tools": await connection.tools()}

    async def call(self, connection, command):
        return await connection.call(command["name"], command["arguments"], command.get("meta"))

    async def shown(self, doing):
        """What it gives, or what it raises; the end of the connection goes on."""
        try:
            return await asyncio.wait_for(doing, CALL_TIMEOUT_S)
        except Exception as error:
            return told(error)


async def main(module):
    loop = asyncio.get_running_loop()
    lines = asyncio.StreamReader(limit=2**24)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    await Driver(importlib.import_module(module), lines).run()


if __name__ == "__main__":
    logging.basicConfig(level=logging.CRITICAL)
    with contextlib.suppress(asyncio.CancelledError):
        asyncio.run(main(sys.argv[1]))
