"""Calls lisp_eval over HTTP with the official Python SDK, which registers itself and lets a person log in.

python oauth_client.py URL PROGRAM CALLBACK: prints the URL that the person must open, reads the URL to which the browser was sent, and
prints the answer.
"""

import asyncio
import sys
from urllib.parse import parse_qs, urlsplit

from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata


class Storage:
    """Keeps what the client has got in memory."""

    tokens = None
    client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client_info):
        self.client = client_info


async def show(url: str) -> None:
    print(url, flush=True)


async def answer() -> AuthorizationCodeResult:
    line = await asyncio.to_thread(sys.stdin.readline)
    values = parse_qs(urlsplit(line.strip()).query)
    return AuthorizationCodeResult(**{name: values.get(name, [None])[0] for name in ("code", "state", "iss")})


async def main() -> None:
    server, program, callback = sys.argv[1:]
    metadata = OAuthClientMetadata(
        client_name="ptc-tests", redirect_uris=[callback], token_endpoint_auth_method="none", application_type="native"
    )
    auth = OAuthClientProvider(server, metadata, Storage(), show, answer)
    async with create_mcp_http_client(auth=auth) as http_client:
        async with Client(streamable_http_client(server, http_client=http_client)) as client:
            result = await client.call_tool("lisp_eval", {"program": program})
            print(result.content[0].text)


asyncio.run(main())
