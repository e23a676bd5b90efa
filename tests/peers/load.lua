-- The request that wrk sends: one evaluation in the stateless era, which needs no session.
local body = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"lisp_eval","arguments":{"program":"(+ 1 2)"},' ..
  '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}'
wrk.method = "POST"
wrk.body = body
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Accept"] = "application/json, text/event-stream"
wrk.headers["MCP-Protocol-Version"] = "2026-07-28"
wrk.headers["Mcp-Method"] = "tools/call"
wrk.headers["Mcp-Name"] = "lisp_eval"

-- Prints the median and the 99th percentile in microseconds, calls per second, and calls that did not get their own answer.
function done(summary, latency, requests)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  print(string.format("FIGURES %d %d %.0f %d", latency:percentile(50), latency:percentile(99),
    summary.requests * 1e6 / summary.duration, failed))
end
