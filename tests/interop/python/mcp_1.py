"""The official SDK, 1.x: sessions only."""

import inspect
from contextlib import asynccontextmanager

from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client

ABLE_TO_SEND_META = "meta" in inspect.signature(ClientSession.call_tool).parameters


class Connection:
    def __init__(self, session):
        self.session = session

    async def tools(self):
        return [tool.name for tool in (await self.session.list_tools()).tools]

    async def call(self, name, arguments, meta):
        result = await self.session.call_tool(name, arguments, **({"meta": meta} if meta else {}))
        return {"text": "\n".join(block.text for block in result.content), "is_error": result.isError}


@asynccontextmanager
async def connected(url, headers):
    async with streamablehttp_client(url, headers=headers) as (read, write, _):
        async with ClientSession(read, write) as session:
            await session.initialize()
            yield Connection(session)
