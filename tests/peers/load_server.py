"""The Python peer of the load benchmark: an MCP server of the official SDK (`MCPServer`, which was `FastMCP` before version 2).

python load_server.py -> its address as one JSON object on standard output; $PTC_LOAD_UPSTREAM is the URL that `wait` reads
"""

import json
import os
import socket

import httpx2
import uvicorn
from mcp.server import MCPServer

upstream = os.environ["PTC_LOAD_UPSTREAM"]
# With the default of 100 connections, calls would wait for each other.
client = httpx2.AsyncClient(
    timeout=30, limits=httpx2.Limits(max_connections=None, max_keepalive_connections=None)
)
server = MCPServer("load", log_level="WARNING")


@server.tool(structured_output=False)
async def add(a: int, b: int) -> str:
    """Adds two numbers"""
    return str(a + b)


@server.tool(structured_output=False)
async def wait() -> str:
    """Waits for the upstream"""
    response = await client.get(upstream)
    return response.raise_for_status().text


listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", 0))
listener.listen(4096)
host, port = listener.getsockname()
app = server.streamable_http_app(json_response=True, max_sessions=None)
config = uvicorn.Config(app, log_level="warning", access_log=False, backlog=4096)
print(
    json.dumps({"event": "serving", "url": f"http://{host}:{port}/mcp"}),
    flush=True,
)
uvicorn.Server(config).run(sockets=[listener])
