"""Drives a server with the official Python SDK, in one of its connection modes. Calls lisp_eval, or TOOL with ARGUMENTS.

python client.py MODE BINARY|URL PROGRAM|ARGUMENTS [TOOL] -> one JSON object on standard output
"""

import asyncio
import json
import os
import sys

from mcp import Client, StdioServerParameters


async def main() -> None:
    mode, server, program, *tool = sys.argv[1:]
    name, arguments = (tool[0], json.loads(program)) if tool else ("lisp_eval", {"program": program})
    if not server.startswith("http://"):
        server = StdioServerParameters(command=server, args=[], env=dict(os.environ))
    async with Client(server, mode=mode) as client:
        tools = (await client.list_tools()).tools
        result = await client.call_tool(name, arguments)
        print(
            json.dumps(
                {
                    "tools": [tool.name for tool in tools],
                    "isError": bool(result.is_error),
                    "text": result.content[0].text,
                    **({"structured": result.structured_content} if tool else {}),
                }
            )
        )


asyncio.run(main())
