"""An MCP server of the official Python SDK over Streamable HTTP, which accepts JWT of an authorization server.

python protected_server.py PORT ISSUER. It has the tool `add`.
"""

import sys

import jwt
import uvicorn
from mcp.server import MCPServer
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings

port, issuer = sys.argv[1:]
resource = f"http://127.0.0.1:{port}/mcp"
keys = jwt.PyJWKClient(f"{issuer}/jwks")


class Verifier:
    """Accepts tokens of the issuer for this server."""

    async def verify_token(self, token: str) -> AccessToken | None:
        try:
            key = keys.get_signing_key_from_jwt(token)
            claims = jwt.decode(token, key, algorithms=["RS256"], audience=resource, issuer=issuer)
        except jwt.PyJWTError:
            return None
        return AccessToken(
            token=token, client_id=claims["client_id"], scopes=claims["scope"].split(), expires_at=claims["exp"], resource=resource
        )


settings = AuthSettings(issuer_url=issuer, resource_server_url=resource, required_scopes=["mcp:call"])
server = MCPServer("protected", token_verifier=Verifier(), auth=settings)


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


app = server.streamable_http_app(json_response=True, stateless_http=True)
uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="error")
