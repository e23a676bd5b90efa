// An MCP server of the official TypeScript SDK that offers HTTP+SSE at /sse and Streamable HTTP, without sessions, at /mcp.
//
// node sse_server.mjs PORT
import { createServer } from "node:http";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { SSEServerTransport } from "@modelcontextprotocol/sdk/server/sse.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { z } from "zod";

/** The open event streams, by session. */
const sessions = new Map();
/** The number of calls that ended their event stream. */
let dropped = 0;

const text = (content) => ({ content: [{ type: "text", text: String(content) }] });

/** Returns a server with its tools. `drop` ends the event stream of its client. */
function mcpServer(drop) {
  const server = new McpServer({ name: "sdk", version: "1.2.3" });
  server.registerTool("add", { inputSchema: { a: z.number(), b: z.number() } }, ({ a, b }) => text(a + b));
  server.registerTool("fail", { inputSchema: { why: z.string() } }, ({ why }) => {
    throw new Error(why);
  });
  server.registerTool("hang", {}, () => new Promise(() => {}));
  // The first call of a client ends the stream instead of answering.
  const once = async () => {
    dropped += 1;
    if (dropped % 2 === 1) {
      await drop();
      return new Promise(() => {});
    }
    return text(`call ${dropped}`);
  };
  server.registerTool("read_once", { annotations: { readOnlyHint: true } }, once);
  server.registerTool("write_once", { annotations: { readOnlyHint: false } }, once);
  server.registerTool("large", { inputSchema: { bytes: z.number() } }, ({ bytes }) => text("x".repeat(bytes)));
  return server;
}

createServer(async (request, response) => {
  const url = new URL(request.url, "http://localhost");
  if (url.pathname === "/sse" && request.method === "GET") {
    const transport = new SSEServerTransport("/messages", response);
    sessions.set(transport.sessionId, transport);
    response.on("close", () => sessions.delete(transport.sessionId));
    await mcpServer(() => transport.close()).connect(transport);
  } else if (url.pathname === "/messages" && request.method === "POST") {
    const transport = sessions.get(url.searchParams.get("sessionId"));
    if (transport) {
      await transport.handlePostMessage(request, response);
    } else {
      response.writeHead(400).end("No transport found for sessionId");
    }
  } else if (url.pathname === "/mcp" && request.method === "POST") {
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
    await mcpServer(async () => {}).connect(transport);
    await transport.handleRequest(request, response);
  } else {
    response.writeHead(url.pathname === "/sse" ? 405 : 404).end();
  }
}).listen(Number(process.argv[2]), "127.0.0.1");
