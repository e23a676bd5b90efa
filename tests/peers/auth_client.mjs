// The client of the conformance packages' `auth/*` scenarios: writes a config for their server, logs in, and calls a tool.
// node auth_client.mjs PTC-COMPILE URL, with MCP_CONFORMANCE_SCENARIO and MCP_CONFORMANCE_CONTEXT
// Acts as the person: it opens the URL of a login, and logs in again if a message asks for it, at most twice.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const [binary, url] = process.argv.slice(2);
const scenario = process.env.MCP_CONFORMANCE_SCENARIO ?? "";
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}");
const MAX_LOGINS = 3;

const folder = mkdtempSync(join(tmpdir(), "auth-client-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
const env = { ...process.env, PTC_RUNNER_MCP_TOKEN_STORE: join(folder, "tokens") };

// The operator of a client with a credential writes the issuer that knows it. Here only the upstream names it.
async function issuer() {
  if (context.issuer) return context.issuer;
  const metadata = await fetch(new URL("/.well-known/oauth-protected-resource/mcp", url));
  return (await metadata.json()).authorization_servers[0];
}

function file(name, text) {
  writeFileSync(join(folder, name), text);
}

async function auth() {
  const { client_id, client_secret, private_key_pem } = context;
  if (scenario === "auth/basic-cimd") {
    return { grant: "authorization_code", client_id: "https://conformance-test.local/client-metadata.json" };
  }
  if (!client_id) return { grant: "authorization_code" };
  if (context.valid_jwt) {
    file("token.jwt", context.valid_jwt);
    return { grant: "jwt_bearer", client_id, client_auth: "none", subject: "token", issuer: await issuer() };
  }
  if (context.idp_id_token) {
    file("token.jwt", context.idp_id_token);
    env.CLIENT_SECRET = client_secret;
    const identity_provider = { issuer: context.idp_issuer, client_id: context.idp_client_id, client_auth: "none" };
    const subject = { subject: "token", subject_token_type: "id_token", identity_provider };
    return { grant: "jwt_bearer", client_id, binding: "client", issuer: await issuer(), ...subject };
  }
  const grant = scenario.startsWith("auth/client-credentials") ? "client_credentials" : "authorization_code";
  const known = { grant, client_id, binding: "client", issuer: await issuer() };
  if (!private_key_pem) {
    env.CLIENT_SECRET = client_secret;
    return known;
  }
  file("client.pem", private_key_pem);
  return { ...known, client_auth: "private_key_jwt" };
}

function run(args, onLine, input) {
  return new Promise((resolve) => {
    const child = spawn(binary, args, { cwd: folder, env, stdio: ["pipe", "pipe", "pipe"] });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on("line", (line) => {
        output += `${line}\n`;
        onLine?.(line);
      });
    }
    child.stdin.end(input);
    child.on("close", (code) => resolve({ code, output }));
  });
}

async function logIn() {
  const { code, output } = await run(["login", "upstreams.json", "--no-browser", "--timeout-s", "10"], (line) => {
    const found = line.match(/^peer: open (\S+)$/);
    // The servers redirect at once to the listener of the login.
    if (found) fetch(found[1]).then((page) => page.text(), (why) => console.error(`the browser failed: ${why}`));
  });
  console.log(output);
  if (code !== 0) process.exit(1);
}

const element = { scheme: "oauth2", ...(await auth()) };
const entry = { transport: "mcp_http", url, allow_insecure_http: true, allow_insecure_auth: true, auth: [element] };
const credentials = {};
if (element.binding) {
  credentials.client = element.client_auth ? { source: "file", path: "client.pem" } : { source: "env", var: "CLIENT_SECRET" };
}
if (element.subject) credentials.token = { source: "file", path: "token.jwt" };
file("upstreams.json", JSON.stringify({ upstreams: { peer: entry }, credentials }));

const needsLogin = element.grant === "authorization_code";
if (needsLogin) await logIn();
for (let logins = 1; ; logins++) {
  // Some servers change after the first call.
  const program = `(tool/call {:server "peer" :tool "test-tool"})\n`;
  const { output } = await run(["repl", "upstreams.json"], undefined, program.repeat(2));
  console.log(output);
  if (!output.includes("auth_expired")) process.exit(output.includes("test") && !output.includes(":error") ? 0 : 1);
  if (!needsLogin || logins === MAX_LOGINS) process.exit(1);
  await logIn();
}
