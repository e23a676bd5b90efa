// Drives a pinned binary with the official TypeScript SDK over stdio: initialize, tools/list, lisp_eval.
// node client.mjs BINARY PROGRAM -> one JSON object on standard output
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [binary, program] = process.argv.slice(2);
const transport = new StdioClientTransport({ command: binary, args: [], env: process.env, stderr: "inherit" });
const client = new Client({ name: "ptc-tests", version: "0" });
await client.connect(transport);
const { tools } = await client.listTools();
const result = await client.callTool({ name: "lisp_eval", arguments: { program } });
console.log(
  JSON.stringify({
    server: client.getServerVersion(),
    tools: tools.map((tool) => tool.name),
    isError: result.isError ?? false,
    text: result.content[0]?.text,
  }),
);
await client.close();
