// Generates arguments of tools with json-schema-faker, seeded, and checks them with Ajv. Reads a list of input schemas as JSON from
// standard input, and writes a list of arguments; null where the generator made none that fit the schema.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const require = createRequire(`${process.argv[2]}/`);
const { JSONSchemaFaker: jsf } = require("json-schema-faker");
const Ajv2020 = require("ajv/dist/2020").default;
const addFormats = require("ajv-formats").default;
const ATTEMPTS = 8;

/** Returns a generator of numbers from 0 to 1 (mulberry32). */
function seeded(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

jsf.option({
  failOnInvalidTypes: false,
  failOnInvalidFormat: false,
  ignoreMissingRefs: true,
  useDefaultValue: false,
  useExamplesValue: false,
  omitNulls: true,
  minItems: 1,
  maxItems: 2,
  maxDefaultItems: 2,
  refDepthMax: 3,
  random: Math.random,
});
jsf.format("byte", () => "aGVsbG8=");
jsf.format("binary", () => "aGVsbG8=");
jsf.format("uuid", () => "3f2504e0-4f89-41d3-9a0c-0305e82c3301");
jsf.format("date-time", () => "2026-11-25T12:00:00Z");
jsf.format("date", () => "2026-11-25");
jsf.format("int32", () => 7);
jsf.format("int64", () => 7);

const ajv = new Ajv2020({ strict: false, validateFormats: true, logger: false });
addFormats(ajv);

/** Returns arguments that fit the schema, or null. */
function generate(schema, at) {
  let validate;
  try {
    validate = ajv.compile(schema);
  } catch {
    validate = () => true;
  }
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const seed = at * ATTEMPTS + attempt;
    // First with optional members, then with fewer of them: deep schemas rarely fit at once.
    jsf.option({ random: seeded(seed), optionalsProbability: attempt < ATTEMPTS / 2 ? 0.3 : 0 });
    try {
      const made = JSON.parse(JSON.stringify(jsf.generate(structuredClone(schema))));
      if (validate(made)) return made;
    } catch {
      // The generator does not know every schema.
    }
  }
  return null;
}

const schemas = JSON.parse(readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(schemas.map((schema, at) => generate(schema, at))));
