"""Runs bodies of functions as `execute` of FastMCP's CodeMode does: `await call_tool(name, arguments)` gives the value of a call and raises if
the call failed. One JSON message per line on standard input and output: a body comes in; calls go out, and their answers come in; the
result goes out.
"""

import json
import sys
import textwrap


def send(message):
    print(json.dumps(message, default=list), flush=True)


async def call_tool(name, arguments):
    send({"call": name, "args": arguments})
    answer = json.loads(sys.stdin.readline())
    if "error" in answer:
        raise RuntimeError(answer["error"])
    return answer["value"]


def run(body):
    # Standard output has the messages.
    scope = {"call_tool": call_tool, "print": lambda *values: None}
    exec("async def program():\n" + textwrap.indent(body, "    "), scope)
    import asyncio

    return asyncio.run(scope["program"]())


for line in sys.stdin:
    try:
        send({"value": run(json.loads(line))})
    except Exception as error:
        send({"error": f"{type(error).__name__}: {error}"})
