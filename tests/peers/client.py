"""Drives a server with the official Python SDK, in one of its connection modes.

python client.py MODE BINARY|URL PROGRAM -> one JSON object on standard output
"""

import asyncio
import json
import os
import sys

from mcp import Client, StdioServerParameters


async def main() -> None:
    mode, server, program = sys.argv[1:]
    if not server.startswith("http://"):
        server = StdioServerParameters(command=server, args=[], env=dict(os.environ))
    async with Client(server, mode=mode) as client:
        tools = (await client.list_tools()).tools
        result = await client.call_tool("lisp_eval", {"program": program})
        print(
            json.dumps(
                {
                    "tools": [tool.name for tool in tools],
                    "isError": bool(result.is_error),
                    "text": result.content[0].text,
                }
            )
        )


asyncio.run(main())
