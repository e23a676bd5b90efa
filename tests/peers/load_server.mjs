// The TypeScript peer of the load benchmark: an MCP server of the official SDK, one transport for each session, JSON answers.
//
// node load_server.mjs -> its address as one JSON object on standard output; $PTC_LOAD_UPSTREAM is the URL that `wait` reads,
// $PTC_PEERS_DIR the folder with the packages
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { createRequire } from "node:module";

const require = createRequire(`${process.env.PTC_PEERS_DIR}/`);
const { McpServer } = require("@modelcontextprotocol/sdk/server/mcp.js");
const { StreamableHTTPServerTransport } = require("@modelcontextprotocol/sdk/server/streamableHttp.js");
const { z } = require("zod");

const text = (text) => ({ content: [{ type: "text", text }] });

function tools() {
  const server = new McpServer({ name: "load", version: "1" });
  server.registerTool(
    "add",
    { description: "Adds two numbers", inputSchema: { a: z.number().int(), b: z.number().int() } },
    async ({ a, b }) => text(String(a + b)),
  );
  server.registerTool("wait", { description: "Waits for the upstream" }, async () => {
    const response = await fetch(process.env.PTC_LOAD_UPSTREAM);
    return text(await response.text());
  });
  return server;
}

const sessions = new Map();

async function answer(request, response) {
  const id = request.headers["mcp-session-id"];
  let transport = sessions.get(id);
  if (!transport) {
    if (id) return response.writeHead(404).end();
    transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      enableJsonResponse: true,
      onsessioninitialized: (id) => sessions.set(id, transport),
    });
    transport.onclose = () => sessions.delete(transport.sessionId);
    await tools().connect(transport);
  }
  await transport.handleRequest(request, response);
}

// The long timeout leaves it to the load generator to close idle connections.
const listener = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
  answer(request, response).catch((error) => {
    console.error(error);
    if (!response.headersSent) response.writeHead(500).end();
  });
});
listener.listen({ host: "127.0.0.1", port: 0, backlog: 4096 }, () => {
  const url = `http://127.0.0.1:${listener.address().port}/mcp`;
  console.log(JSON.stringify({ event: "serving", url }));
});
