"""A server on FastMCP with its own telemetry on; it sends its spans to the collector that COLLECTOR names.

Over stdio, or with `http` over HTTP on a port that the system chooses.
"""

import os
import sys
import urllib.request

from fastmcp import FastMCP

import tracing
from listening import serve


def send(body):
    urllib.request.urlopen(urllib.request.Request(os.environ["COLLECTOR"], body), timeout=10).read()


tracing.record("server", send)
server = FastMCP("traced", version="1.0.0")


@server.tool
def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


if "http" in sys.argv:
    serve(server.http_app())
else:
    server.run(show_banner=False)
