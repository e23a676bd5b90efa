// Reads the manifest of a desktop bundle as clients do, with the code that they share.
// node bundle.mjs FOLDER VALUES -> the command, args and env with which a client starts the server of the unpacked bundle
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { getMcpConfigForManifest } from "@anthropic-ai/mcpb";

const [folder, values] = process.argv.slice(2);
const manifest = JSON.parse(readFileSync(join(folder, "manifest.json"), "utf8"));
const config = await getMcpConfigForManifest({
  manifest,
  extensionPath: folder,
  systemDirs: {},
  userConfig: JSON.parse(values),
  pathSeparator: "/",
  logger: { warn: (message) => console.error(message) },
});
console.log(JSON.stringify(config ?? null));
