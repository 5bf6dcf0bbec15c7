"""Pydantic AI's toolset over MCP, called directly as its documentation has it for use without a model."""

from contextlib import asynccontextmanager

from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport
from pydantic_ai import ModelRetry
from pydantic_ai.mcp import MCPToolset

ABLE_TO_SEND_META = True


class Connection:
    def __init__(self, toolset):
        self.toolset = toolset

    async def tools(self):
        return [tool.name for tool in await self.toolset.list_tools()]

    async def call(self, name, arguments, meta):
        try:
            return {"text": str(await self.toolset.direct_call_tool(name, arguments, metadata=meta)), "is_error": False}
        except ModelRetry as error:
            # What the model is shown so that it tries again.
            return {"text": error.message, "is_error": True}


@asynccontextmanager
async def connected(url, headers):
    client = Client(StreamableHttpTransport(url, headers=headers))
    async with MCPToolset(client) as toolset:
        yield Connection(toolset)
