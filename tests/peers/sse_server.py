"""An MCP server of the official Python SDK that offers HTTP+SSE at /sse and Streamable HTTP at /mcp.

python sse_server.py PORT
"""

import sys

import anyio
import uvicorn
from mcp.server import MCPServer

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


app = server.streamable_http_app()
app.router.routes.extend(server.sse_app().routes)
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
