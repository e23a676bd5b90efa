#!/usr/bin/env bash
# From an installed ptc-compile to a first answer, in a folder that has only an .mcp.json. The last line is the processor time of all
# processes, in seconds.
set -euo pipefail
ptc-compile import .mcp.json --output upstreams.json
ptc-compile upstreams.json --output ./server
./server eval '(count (dir "memory"))'
times | tail -1 | tr 'ms' '  ' | awk '{ print $1 * 60 + $2 + $3 * 60 + $4 }'
