"""One trace over a client of the Python SDK, Vary, and a server on FastMCP with telemetry of its own."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters

import tracing
from telling import JOB, same, told

IS_MODERN = JOB["era"] == "modern"
HERE = os.path.dirname(os.path.abspath(__file__))

# The names and attributes of Vary's spans that do not depend on ports and ids.
COMMON = {
    "mcp.method.name": "tools/call",
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "add",
}
HTTP = {"network.transport": "tcp", "network.protocol.name": "http", "network.protocol.version": "1.1"}
PIPE = {"network.transport": "pipe"}
VARIES = {"jsonrpc.request.id", "mcp.session.id", "mcp.protocol.version", "server.port", "client.address"}


def started(command, environment):
    """A program, and the URL that it prints."""
    program = subprocess.Popen(
        command, env=os.environ | environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    for line in program.stdout:
        found = [word for word in line.decode().split() if word.startswith("http://127.0.0.1:")]
        if found:
            return program, found[0].rstrip("\x1b[0m.,")
    raise AssertionError(f"{command} printed no URL")


def configured(folder, collector, upstream):
    """A configuration that records each request."""
    path = os.path.join(folder, "vary.json")
    traces = {"endpoint": collector.url, "sample": "100%", "follow": "all"}
    with open(path, "w") as file:
        json.dump({"servers": {"sums": upstream}, "traces": traces, "start-wait": "60s"}, file)
    return path


def one(spans, kind, name):
    found = [span for span in spans if span["kind"] == kind and span["name"] == name]
    same(len(found), 1)
    return found[0]


def table(span):
    return {key: value for key, value in span["attributes"].items() if key not in VARIES}


async def trace_of_one_call(over_http):
    collector = tracing.Collector()
    environment = {"COLLECTOR": collector.url}
    server = [sys.executable, os.path.join(HERE, "traced_server.py")]
    programs = []
    SINK[0] = lambda body: collector.spans.extend(tracing.read(body))
    try:
        with tempfile.TemporaryDirectory() as folder:
            upstream = {"command": server[0], "args": server[1:], "env": environment}
            if over_http:
                program, url = started([*server, "http"], environment)
                programs.append(program)
                upstream = {"url": url}
            path = configured(folder, collector, upstream)
            target = StdioServerParameters(command=JOB["vary"], args=["serve", "--stdio", path], env=dict(os.environ))
            if JOB["way"] == "http":
                program, target = started([JOB["vary"], "serve", "--listen", "127.0.0.1:0", path], {})
                programs.append(program)
            # A client that probes takes a server for a legacy one if it starts slowly.
            mode = "2026-07-28" if IS_MODERN else "legacy"
            async with Client(target, mode=mode, read_timeout_seconds=60) as client:
                result = await client.call_tool("add", {"a": 2, "b": 3})
                same(result.content[0].text, "5")
                # While Vary runs: the SDK kills a program that needs more than two seconds for its end.
                limit = time.monotonic() + 30
                while len([it for it in collector.of("vary") if it["name"] == "tools/call add"]) < 2:
                    same(time.monotonic() < limit, True)
                    await asyncio.sleep(0.05)
    finally:
        for program in programs:
            program.terminate()
            program.wait()
        collector.shutdown()
    check(collector, over_http)


def check(collector, over_http):
    outer = one(collector.of("vary"), "SERVER", "tools/call add")
    inner = one(collector.of("vary"), "CLIENT", "tools/call add")
    sent = one(collector.of("client"), "CLIENT", "MCP send tools/call add")
    handled = one(collector.of("server"), "SERVER", "tools/call add")
    spans = [sent, outer, inner, handled]
    same({span["trace"] for span in spans}, {sent["trace"]})
    same([span["parent"] for span in spans[1:]], [span["id"] for span in spans[:-1]])
    way = HTTP if JOB["way"] == "http" else PIPE
    same(table(outer), {**COMMON, **way, "vary.variant": "standard", "vary.variant.why": "ranking"})
    address = {"server.address": "127.0.0.1"} if over_http else {}
    same(table(inner), {**COMMON, **(HTTP if over_http else PIPE), **address, "vary.server": "sums"})
    revision = "2026-07-28" if IS_MODERN else "2025-11-25"
    same(outer["attributes"]["mcp.protocol.version"], revision)


# Where the spans of the client go. The SDK of OpenTelemetry is set up once in a process.
SINK = [lambda body: None]


async def main():
    tracing.record("client", lambda body: SINK[0](body))
    for over_http in [False, True]:
        behind = "http" if over_http else "stdio"
        await told(f"one trace over a client, vary, and a server over {behind}", lambda: trace_of_one_call(over_http))


asyncio.run(main())
