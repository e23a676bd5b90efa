// Drives a server with the official TypeScript SDK: initialize, tools/list, and a call of lisp_eval, or of TOOL with ARGUMENTS.
// node client.mjs BINARY|URL PROGRAM|ARGUMENTS [TOOL] -> one JSON object on standard output
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [server, program, tool] = process.argv.slice(2);
const headers = process.env.TOKEN ? { Authorization: `Bearer ${process.env.TOKEN}` } : {};
const transport = server.startsWith("http://")
  ? new StreamableHTTPClientTransport(new URL(server), { requestInit: { headers } })
  : new StdioClientTransport({ command: server, args: [], env: process.env, stderr: "inherit" });
const client = new Client({ name: "ptc-tests", version: "0" });
await client.connect(transport);
const { tools } = await client.listTools();
const result = await client.callTool(
  tool ? { name: tool, arguments: JSON.parse(program) } : { name: "lisp_eval", arguments: { program } },
);
console.log(
  JSON.stringify({
    server: client.getServerVersion(),
    tools: tools.map((tool) => tool.name),
    isError: result.isError ?? false,
    text: result.content[0]?.text,
    structured: result.structuredContent,
  }),
);
await transport.terminateSession?.();
await client.close();
