"""An MCP server of the official Python SDK over Streamable HTTP, in one of its response modes.

python server.py PORT json|events stateful|stateless
"""

import sys

from mcp.server import MCPServer

port, answers, sessions = sys.argv[1:]
server = MCPServer("sdk")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
def fail(why: str) -> str:
    """Fails."""
    raise ValueError(why)


server.run(
    transport="streamable-http",
    port=int(port),
    json_response=answers == "json",
    stateless_http=sessions == "stateless",
)
