// Calls lisp_eval over HTTP with the official TypeScript SDK, which registers itself and lets a person log in.
// node oauth_client.mjs URL PROGRAM CALLBACK: prints the URL that the person must open, reads the URL to which the browser was sent, and
// prints the answer.
import { createInterface } from "node:readline/promises";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [server, program, callback] = process.argv.slice(2);
const kept = {};
const authProvider = {
  redirectUrl: callback,
  clientMetadata: {
    application_type: "native",
    client_name: "ptc-tests",
    grant_types: ["authorization_code", "refresh_token"],
    redirect_uris: [callback],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
  },
  clientInformation: () => kept.client,
  saveClientInformation: (client) => (kept.client = client),
  tokens: () => kept.tokens,
  saveTokens: (tokens) => (kept.tokens = tokens),
  redirectToAuthorization: (url) => console.log(url.href),
  codeVerifier: () => kept.verifier,
  saveCodeVerifier: (verifier) => (kept.verifier = verifier),
};
const connect = async () => {
  const client = new Client({ name: "ptc-tests", version: "0" });
  const transport = new StreamableHTTPClientTransport(new URL(server), { authProvider });
  return [client, transport, await client.connect(transport).catch((fault) => fault)];
};
const [, first, refused] = await connect();
if (!(refused instanceof UnauthorizedError)) throw refused ?? new Error("connected without a token");
const lines = createInterface(process.stdin);
const [answer] = await new Promise((resolve) => lines.once("line", (...line) => resolve(line)));
lines.close();
await first.finishAuth(new URL(answer).searchParams.get("code"));
const [client, , fault] = await connect();
if (fault) throw fault;
const result = await client.callTool({ name: "lisp_eval", arguments: { program } });
console.log(result.content[0].text);
await client.close();
