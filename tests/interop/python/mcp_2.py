"""The official SDK, 2.x: both eras."""

from contextlib import asynccontextmanager

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

ABLE_TO_SEND_META = True


class Connection:
    def __init__(self, client):
        self.client = client

    async def tools(self):
        return [tool.name for tool in (await self.client.list_tools()).tools]

    async def call(self, name, arguments, meta):
        result = await self.client.call_tool(name, arguments, meta=meta)
        return {"text": "\n".join(block.text for block in result.content), "is_error": result.is_error}


@asynccontextmanager
async def connected(url, headers):
    async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
        async with Client(streamable_http_client(url, http_client=http)) as client:
            yield Connection(client)
