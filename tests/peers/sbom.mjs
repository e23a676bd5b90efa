// Validates a CycloneDX document against the official schema of its version, with CycloneDX's own library.
// node sbom.mjs FILE -> "valid", or the errors and exit code 1
import { readFileSync } from "node:fs";
import { Spec, Validation } from "@cyclonedx/cyclonedx-library";

const errors = await new Validation.JsonStrictValidator(Spec.Version.v1dot6).validate(readFileSync(process.argv[2], "utf8"));
if (errors === null) {
  console.log("valid");
} else {
  console.error(JSON.stringify(errors, null, 2));
  process.exit(1);
}
