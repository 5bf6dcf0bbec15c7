"""LangChain's adapter, as an agent uses it: tools by name, loaded in one session."""

from contextlib import asynccontextmanager

from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools

ABLE_TO_SEND_META = False


class Connection:
    def __init__(self, session):
        self.session = session
        self.by_name = None

    async def tools(self):
        self.by_name = {tool.name: tool for tool in await load_mcp_tools(self.session)}
        return list(self.by_name)

    async def call(self, name, arguments, meta):
        if self.by_name is None:
            await self.tools()
        # As a model calls it; the message is what the model is shown.
        message = await self.by_name[name].ainvoke({"type": "tool_call", "id": "1", "name": name, "args": arguments})
        content = message.content
        text = content if isinstance(content, str) else "\n".join(block["text"] for block in content)
        return {"text": text, "is_error": message.status == "error"}


@asynccontextmanager
async def connected(url, headers):
    client = MultiServerMCPClient({"gateward": {"transport": "streamable_http", "url": url, "headers": headers}})
    async with client.session("gateward") as session:
        yield Connection(session)
