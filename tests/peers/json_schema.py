"""Validates documents against a published JSON Schema, whose `$schema` names its dialect.

json_schema.py SCHEMA DOCUMENT… -> a line for each fault, with the document and the place in it, and exit code 1; or nothing
"""

import json
import sys

from jsonschema import FormatChecker
from jsonschema.validators import validator_for

with open(sys.argv[1], encoding="utf-8") as file:
    schema = json.load(file)
dialect = validator_for(schema, default=None)
if dialect is None:
    sys.exit(f"{sys.argv[1]}: unknown dialect {schema.get('$schema')}")
dialect.check_schema(schema)
validator = dialect(schema, format_checker=FormatChecker())
faults = 0
for path in sys.argv[2:]:
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    for error in validator.iter_errors(document):
        print(f"{path}: {error.json_path}: {error.message}")
        faults += 1
sys.exit(1 if faults else 0)
