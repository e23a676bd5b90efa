"""A receiver of OTLP/HTTP that parses with OpenTelemetry's own protocol buffers and refuses JSON that these do not allow.

Writes its port, then the spans of each request as one line of JSON, all to standard output.
"""

import base64
import json
from http.server import BaseHTTPRequestHandler, HTTPServer

from google.protobuf.json_format import MessageToDict, ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse

IDS = {"traceId": 16, "spanId": 8, "parentSpanId": 8}


def ids_as_base64(value):
    """Converts ids from hexadecimal to base64. This is the only difference between OTLP's JSON and that of protocol buffers."""
    if isinstance(value, list):
        return [ids_as_base64(item) for item in value]
    if not isinstance(value, dict):
        return value
    converted = {}
    for name, item in value.items():
        if name in IDS:
            raw = bytes.fromhex(item)
            if len(raw) != IDS[name] or not any(raw):
                raise ValueError(f"{name}: {item}")
            item = base64.b64encode(raw).decode()
        converted[name] = ids_as_base64(item)
    return converted


class Collector(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            if (self.path, self.headers["Content-Type"]) != ("/v1/traces", "application/json"):
                raise ValueError(f"{self.path} {self.headers['Content-Type']}")
            request = ParseDict(ids_as_base64(json.loads(body)), ExportTraceServiceRequest())
            spans = [span for of in request.resource_spans for scope in of.scope_spans for span in scope.spans]
            if any(span.end_time_unix_nano < span.start_time_unix_nano for span in spans):
                raise ValueError("a span ends before it starts")
            status, answer = 200, MessageToDict(ExportTraceServiceResponse())
            said = {"resource": MessageToDict(request.resource_spans[0].resource), "spans": [MessageToDict(span) for span in spans]}
        except Exception as fault:
            status, answer = 400, {"message": str(fault)}
            said = {"refused": str(fault)}
        print(json.dumps(said), flush=True)
        text = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Collector)
print(server.server_address[1], flush=True)
server.serve_forever()
