// An MCP server of the official TypeScript SDK over Streamable HTTP, which accepts JWT of an authorization server.
// node protected_server.mjs PORT ISSUER. It has the tool `add`.
import express from "express";
import { createRemoteJWKSet, jwtVerify } from "jose";
import * as z from "zod";
import { requireBearerAuth } from "@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js";
import { getOAuthProtectedResourceMetadataUrl, mcpAuthMetadataRouter } from "@modelcontextprotocol/sdk/server/auth/router.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";

const [port, issuer] = process.argv.slice(2);
const resource = new URL(`http://127.0.0.1:${port}/mcp`);
const oauthMetadata = await (await fetch(`${issuer}/.well-known/openid-configuration`)).json();
const keys = createRemoteJWKSet(new URL(oauthMetadata.jwks_uri));
const verifier = {
  async verifyAccessToken(token) {
    const { payload } = await jwtVerify(token, keys, { issuer, audience: resource.href, typ: "at+jwt" });
    return { token, clientId: payload.client_id, scopes: payload.scope.split(" "), expiresAt: payload.exp };
  },
};
const app = express();
app.use(express.json());
app.use(mcpAuthMetadataRouter({ oauthMetadata, resourceServerUrl: resource, scopesSupported: ["mcp:call"] }));
const resourceMetadataUrl = getOAuthProtectedResourceMetadataUrl(resource);
app.all("/mcp", requireBearerAuth({ verifier, requiredScopes: ["mcp:call"], resourceMetadataUrl }), async (request, response) => {
  const server = new McpServer({ name: "protected", version: "1" });
  server.registerTool("add", { inputSchema: { a: z.number(), b: z.number() } }, ({ a, b }) => ({
    content: [{ type: "text", text: String(a + b) }],
  }));
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined, enableJsonResponse: true });
  await server.connect(transport);
  await transport.handleRequest(request, response, request.body);
});
app.listen(Number(port), "127.0.0.1");
