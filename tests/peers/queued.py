"""Waits in the queue of a server with the official Python SDK.

python queued.py BINARY -> one JSON object on standard output
"""

import asyncio
import json
import os
import sys

from mcp import Client, StdioServerParameters


async def evaluate(client, program: str):
    return (await client.call_tool("lisp_eval", {"program": program})).structured_content


async def main() -> None:
    server = StdioServerParameters(command=sys.argv[1], args=[], env=dict(os.environ))
    async with Client(server, mode="legacy") as client:
        running = asyncio.create_task(evaluate(client, "(loop [i 0] (recur (inc i)))"))
        await asyncio.sleep(0.2)
        refused = await evaluate(client, "(+ 1 2)")
        waiting = asyncio.create_task(evaluate(client, "(+ 3 4)"))
        ended = await running
        print(
            json.dumps(
                {
                    "refused": refused["reason"],
                    "retry": refused["retry_after_ms"],
                    "ended": ended["reason"],
                    "after": (await waiting)["result"],
                }
            )
        )


asyncio.run(main())
