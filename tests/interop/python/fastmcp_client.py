"""FastMCP's client: sessions in 2.x, both eras in 4.x."""

from contextlib import asynccontextmanager

from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport

ABLE_TO_SEND_META = True


class Connection:
    def __init__(self, client):
        self.client = client

    async def tools(self):
        return [tool.name for tool in await self.client.list_tools()]

    async def call(self, name, arguments, meta):
        result = await self.client.call_tool(name, arguments, meta=meta, raise_on_error=False)
        return {"text": "\n".join(block.text for block in result.content), "is_error": result.is_error}


@asynccontextmanager
async def connected(url, headers):
    async with Client(StreamableHttpTransport(url, headers=headers)) as client:
        yield Connection(client)
