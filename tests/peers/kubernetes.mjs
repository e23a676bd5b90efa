// Checks Kubernetes manifests against the API's schemas and the types of its official client, and lists them.
// node kubernetes.mjs FILE -> one JSON array on standard output: [apiVersion, kind, name] of each; faults end with 1
import { deepStrictEqual } from "node:assert";
import { readFileSync } from "node:fs";
import { ObjectSerializer } from "@kubernetes/client-node/dist/serializer.js";
import { parseAllDocuments } from "yaml";

const described = [];
for (const document of parseAllDocuments(readFileSync(process.argv[2], "utf8"), { strict: true })) {
  if (document.errors.length > 0) throw document.errors[0];
  const manifest = document.toJS();
  const { apiVersion, kind, metadata } = manifest;
  const models = await import(`kubernetes-models/${apiVersion}`);
  if (!models[kind]) throw new Error(`${apiVersion} has no ${kind}`);
  new models[kind](manifest).validate();
  // The schemas accept unknown keys, as a cluster does by default. The client's types drop them.
  const type = apiVersion.split("/").pop().replace("v", "V") + kind;
  const known = ObjectSerializer.serialize(ObjectSerializer.deserialize(structuredClone(manifest), type), type);
  deepStrictEqual(JSON.parse(JSON.stringify(known)), manifest);
  described.push([apiVersion, kind, metadata.name]);
}
console.log(JSON.stringify(described));
