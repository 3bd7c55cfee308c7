"""Spans of the Python SDK and of FastMCP, and a collector for those that are sent by OTLP."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry import trace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult


class Collector(ThreadingHTTPServer):
    """Takes spans by OTLP on a port that the system chooses, and lines with spans of programs in Python."""

    def __init__(self):
        self.spans = []
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def of(self, service):
        return [span for span in self.spans if span["service"] == service]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.spans.extend(read(body))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def text(value):
    return str(getattr(value, value.WhichOneof("value")))


def read(body):
    for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
        service = next(it for it in resource.resource.attributes if it.key == "service.name")
        for span in (span for scope in resource.scope_spans for span in scope.spans):
            yield {
                "service": text(service.value),
                "trace": span.trace_id.hex(),
                "id": span.span_id.hex(),
                "parent": span.parent_span_id.hex() or None,
                "name": span.name,
                "kind": {2: "SERVER", 3: "CLIENT"}[span.kind],
                "attributes": {it.key: text(it.value) for it in span.attributes},
            }


class Encoder(SpanExporter):
    """Sends each span as OTLP to a function, without the packages of an exporter."""

    def __init__(self, send):
        self.send = send

    def export(self, spans):
        for span in spans:
            request = ExportTraceServiceRequest()
            of_resource = request.resource_spans.add()
            service = of_resource.resource.attributes.add(key="service.name")
            service.value.string_value = span.resource.attributes["service.name"]
            sent = of_resource.scope_spans.add().spans.add(name=span.name, kind=span.kind.value + 1)
            sent.trace_id = span.context.trace_id.to_bytes(16, "big")
            sent.span_id = span.context.span_id.to_bytes(8, "big")
            if span.parent:
                sent.parent_span_id = span.parent.span_id.to_bytes(8, "big")
            for key, value in (span.attributes or {}).items():
                sent.attributes.add(key=key).value.string_value = str(value)
            self.send(request.SerializeToString())
        return SpanExportResult.SUCCESS


def record(service, send):
    """Turns telemetry on, as a user would who has the SDK of OpenTelemetry."""
    provider = TracerProvider(resource=Resource({"service.name": service}))
    provider.add_span_processor(SimpleSpanProcessor(Encoder(send)))
    trace.set_tracer_provider(provider)
