"""Validates SARIF logs against the published schema.

sarif.py SCHEMA LOG… -> a line for each fault, with the log and the place in it, and exit code 1; or nothing
"""

import json
import sys

from jsonschema import Draft4Validator, FormatChecker

with open(sys.argv[1], encoding="utf-8") as file:
    schema = json.load(file)
Draft4Validator.check_schema(schema)
validator = Draft4Validator(schema, format_checker=FormatChecker())
faults = 0
for path in sys.argv[2:]:
    with open(path, encoding="utf-8") as file:
        log = json.load(file)
    for error in validator.iter_errors(log):
        print(f"{path}: {error.json_path}: {error.message}")
        faults += 1
sys.exit(1 if faults else 0)
