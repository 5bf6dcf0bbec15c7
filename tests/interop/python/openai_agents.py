"""The OpenAI Agents SDK's MCP server object, as its agents use it."""

from contextlib import asynccontextmanager

from agents.mcp import MCPServerStreamableHttp

ABLE_TO_SEND_META = True


class Connection:
    def __init__(self, server):
        self.server = server

    async def tools(self):
        return [tool.name for tool in await self.server.list_tools()]

    async def call(self, name, arguments, meta):
        result = await self.server.call_tool(name, arguments, meta=meta)
        return {"text": "\n".join(block.text for block in result.content), "is_error": result.is_error}


@asynccontextmanager
async def connected(url, headers):
    # Its own default would end a slow call before the runner cancels it.
    async with MCPServerStreamableHttp({"url": url, "headers": headers}, client_session_timeout_seconds=30) as server:
        yield Connection(server)
