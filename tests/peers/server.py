"""An MCP server of the official Python SDK over Streamable HTTP, in one of its response modes, or with HTTP+SSE at /sse beside it.

python server.py PORT json|events|sse stateful|stateless
"""

import sys

import anyio
import uvicorn
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


@server.tool()
async def hang() -> str:
    """Never answers."""
    await anyio.sleep_forever()


app = server.streamable_http_app(json_response=answers == "json", stateless_http=sessions == "stateless")
if answers == "sse":
    app.router.routes.extend(server.sse_app().routes)
uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="error")
