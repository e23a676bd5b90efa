// Drives the queue of a server with the official TypeScript SDK.
// node queue.mjs stdio BINARY -> a full queue, and the end of the server while calls wait
// node queue.mjs http URL -> cancelled and disconnected in the queue
// One JSON object on standard output.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const QUEUE = 1024;
const ENDLESS = "(loop [i 0] (recur (inc i)))";
const [mode, server] = process.argv.slice(2);

async function connect() {
  const transport =
    mode === "http"
      ? new StreamableHTTPClientTransport(new URL(server))
      : new StdioClientTransport({ command: server, args: [], env: process.env, stderr: "inherit" });
  const client = new Client({ name: "ptc-tests", version: "0" });
  await client.connect(transport);
  return { client, transport };
}

function evaluate(client, program, signal) {
  const call = client.callTool({ name: "lisp_eval", arguments: { program } }, undefined, { signal, timeout: 300_000 });
  return call.then((result) => result.structuredContent);
}

async function metric(name, value) {
  for (;;) {
    const text = await (await fetch(new URL("/metrics", server))).text();
    if (text.split("\n").includes(`${name} ${value}`)) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

async function overStdio() {
  const { client, transport } = await connect();
  const calls = [evaluate(client, ENDLESS)];
  for (let i = 0; i < QUEUE; i++) calls.push(evaluate(client, "1"));
  const refused = await evaluate(client, "1");
  // Requests that run no program are answered while the queue is full.
  await client.ping();
  const { tools } = await client.listTools();
  const debug = await client.callTool({ name: "lisp_debug", arguments: { op: "stats" } });
  process.kill(transport.pid, "SIGTERM");
  const ends = {};
  for (const answer of await Promise.all(calls)) {
    const end = answer.reason ?? answer.result;
    ends[end] = (ends[end] ?? 0) + 1;
  }
  return { refused: refused.reason, retry: refused.retry_after_ms, tools: tools.length, debug: debug.isError ?? false, ends };
}

async function overHttp() {
  const { client: holder } = await connect();
  const stop = new AbortController();
  const running = evaluate(holder, ENDLESS, stop.signal).catch(() => "aborted");
  await metric("ptc_programs_running", 1);
  const { client } = await connect();
  const cancel = new AbortController();
  const cancelled = evaluate(client, "1", cancel.signal).catch(() => "aborted");
  await metric("ptc_programs_queued", 1);
  cancel.abort();
  await metric("ptc_programs_queued", 0);
  const { client: leaving } = await connect();
  const lost = evaluate(leaving, "1").catch(() => "closed");
  await metric("ptc_programs_queued", 1);
  await leaving.close();
  await metric("ptc_programs_queued", 0);
  await metric("ptc_programs_running", 1);
  stop.abort();
  const after = await evaluate(client, "(+ 1 2)");
  return { cancelled: await cancelled, lost: await lost, running: await running, after: after.result };
}

console.log(JSON.stringify(mode === "http" ? await overHttp() : await overStdio()));
process.exit(0);
