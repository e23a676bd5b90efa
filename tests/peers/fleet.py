"""Lists the tools of servers, and calls some, with the official Python SDK.

python fleet.py FILE of {"servers": {NAME: {"command", "args", "env", "cwd"}}, "calls": [[NAME, TOOL, ARGUMENTS]]}
-> {"tools": {NAME: {TOOL: INPUT SCHEMA}}, "values": [VALUE]} on standard output
"""

import asyncio
import json
import os
import sys

from mcp import Client, StdioServerParameters


async def ask(server, calls):
    """Returns the input schemas of a server by tool, and the value of each call: its structured content, else its text."""
    server = {**server, "env": {**os.environ, **server["env"]}}
    async with Client(StdioServerParameters(**server), mode="legacy") as client:
        listed, cursor = [], None
        while True:
            page = await client.list_tools(cursor=cursor)
            listed += page.tools
            cursor = page.next_cursor
            if cursor is None:
                break
        values = {}
        for at, tool, arguments in calls:
            result = await client.call_tool(tool, arguments)
            assert not result.is_error, (tool, result.content)
            structured = result.structured_content
            values[at] = structured if structured is not None else result.content[0].text
        return {tool.name: tool.input_schema for tool in listed}, values


async def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as file:
        asked = json.load(file)
    tools, values = {}, {}
    for name, server in asked["servers"].items():
        calls = [(at, tool, arguments) for at, (of, tool, arguments) in enumerate(asked["calls"]) if of == name]
        tools[name], found = await ask(server, calls)
        values.update(found)
    print(json.dumps({"tools": tools, "values": [values[at] for at in sorted(values)]}))


asyncio.run(main())
