"""Runs every query of the dashboard and every alert in Prometheus, which scrapes `vary serve` under some load.

Argument: a JSON object with the programs `vary`, `weather` and `prometheus`, the files `dashboard` and `alerts`, and a `directory`
for what the processes write. A query that is refused or finds nothing is a failure: a metric, a label or a value has another name.
"""

import contextlib
import hashlib
import http.server
import json
import re
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

KEY = "vary_" + 43 * "A"
LIMIT = 60  # seconds for what takes one or two
ISSUER_KEY = {"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": "1",  # of RFC 7517, A.1
              "x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4", "y": "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"}
# What the variables of Grafana become. The load takes seconds.
VARIABLES = {"$__rate_interval": "10s", "$__range": "1m", "$__interval": "10s", "$job": ".+", "$instance": ".+"}


class Issuer(http.server.BaseHTTPRequestHandler):
    """Serves the keys of an issuer of tokens."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps({"keys": [ISSUER_KEY]}).encode())

    def log_message(self, *_):
        pass


def configuration(argument, issuer):
    """Something for each metric: a server and a collector that are down, a deprecated variant, a rule that denies, a limit."""
    directory = argument["directory"]
    return {
        "servers": {"weather": {"command": argument["weather"]}, "gone": {"url": "http://127.0.0.1:1/mcp"}},
        "probes": "127.0.0.1:0",
        "public-url": "https://mcp.example",
        "auth": {
            "keys": [{"name": "load", "sha256": hashlib.sha256(KEY.encode()).hexdigest()}],
            "issuers": [{"issuer": issuer, "jwks": f"{issuer}/keys"}],
        },
        "access": [{"name": "all", "when": {"anyone": "on"}, "allow": ["*"]},
                   {"name": "no-forecast", "when": {"anyone": "on"}, "deny": ["*get_forecast"]}],
        "rates": [{"name": "calls", "rate": "60/min", "burst": 40}],
        "audit": {"to": f"file {directory}/audit.jsonl"},
        "traces": {"endpoint": "http://127.0.0.1:1", "sample": "100%"},
        "variants": {"new": {}, "old": {"status": "deprecated"}},
    }


def post(url, method, params, key=KEY):
    """The status of the answer to a request of 2026-07-28."""
    client = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
              "io.modelcontextprotocol/clientInfo": {"name": "load", "version": "1"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": client}}
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
               "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Host": "mcp.example"}
    headers |= {"Mcp-Name": params["name"]} if "name" in params else {}
    headers |= {"Authorization": f"Bearer {key}"} if key else {}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=LIMIT) as answer:
            answer.read()
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def load(url):
    """Calls that succeed and that fail, for each reason; the number of answers with each status."""
    statuses = {}
    for variant in ["new", "new", "old"]:
        for name, arguments, key in [
            ("weather_get_weather", {"location": "Bern"}, KEY),
            ("weather_get_weather", {"location": "Atlantis"}, KEY),
            ("weather_get_forecast", {"location": "Bern"}, KEY),
            ("weather_get_nothing", {}, KEY),
            ("weather_get_weather", {"location": 5}, KEY),
            ("weather_get_weather", {"location": "Bern"}, None),
            ("weather_get_weather", {"location": "Bern"}, "another-key"),
        ]:
            status = post(f"{url}/v/{variant}", "tools/call", {"name": name, "arguments": arguments}, key)
            statuses[status] = statuses.get(status, 0) + 1
    post(url, "tools/list", {})
    return statuses


def until(what, find):
    """Looks again and again until there is a value."""
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        if found := find():
            return found
        time.sleep(0.05)
    raise SystemExit(f"{what}: not after {LIMIT} seconds")


@contextlib.contextmanager
def running(command, log):
    """A program whose output goes to a file. It ends with the block."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        try:
            yield lambda pattern: until(f"{pattern} in {log}", lambda: re.search(pattern, log.read_text()))
        finally:
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def ask(prometheus, path, **parameters):
    """The answer of Prometheus' HTTP API; a refused query is an answer, too."""
    try:
        with urllib.request.urlopen(f"{prometheus}/api/v1/{path}?{urllib.parse.urlencode(parameters)}", timeout=LIMIT) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        return json.load(error)


def queries(dashboard):
    """Each query as Grafana would send it, behind the title of its panel."""
    found = [(panel["title"], target["expr"]) for panel in dashboard["panels"] for target in panel.get("targets", [])]
    found += [(note["name"], note["expr"]) for note in dashboard["annotations"]["list"]]
    found = [f"{title}: {query}" for title, query in found]
    for variable, value in VARIABLES.items():
        found = [query.replace(variable, value) for query in found]
    return found


def check(argument, vary, prometheus):
    """What is wrong, after some load."""
    listening, address = vary(r"listening on (\S+)")[1], prometheus(r'"Listening on" address=(\S+)')[1]
    url, address = f"http://{listening}/mcp", f"http://{address}"
    prometheus("Server is ready")
    up = lambda: ask(address, "query", query='up{job="vary"} == 1')["data"]["result"]
    until("a first scrape", up)
    # Rates need the load between two scrapes.
    for _ in range(4):
        statuses = load(url)
        time.sleep(0.6)
    problems = []
    if not {200, 401} <= set(statuses):
        problems.append(f"the load got {statuses}")
    wanted = queries(json.loads(Path(argument["dashboard"]).read_text()))
    # The last scrape may be under way.
    problem = lambda answer: answer.get("error") or (None if answer["data"]["result"] else "finds nothing")
    asked = lambda: [(query, problem(ask(address, "query", query=query.split(": ", 1)[1]))) for query in wanted]
    deadline = time.monotonic() + 5
    while any(wrong for _, wrong in asked()) and time.monotonic() < deadline:
        load(url)
    problems += [f"{query}: {wrong}" for query, wrong in asked() if wrong]
    evaluated = lambda: [r for g in ask(address, "rules")["data"]["groups"] for r in g["rules"] if r["health"] != "unknown"]
    for rule in until("the first evaluation of the rules", evaluated):
        if rule["health"] != "ok":
            problems.append(f"{rule['name']}: {rule.get('lastError')}")
    pending = ask(address, "query", query='ALERTS{alertname="VaryServerDown", server="gone"}')
    if not pending["data"]["result"]:
        problems.append("VaryServerDown is quiet, and the server `gone` is down")
    return problems, len(wanted)


def main():
    argument = json.loads(sys.argv[1])
    directory = Path(argument["directory"])
    issuer = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Issuer)
    threading.Thread(target=issuer.serve_forever, daemon=True).start()
    file = directory / "vary.json"
    file.write_text(json.dumps(configuration(argument, f"http://127.0.0.1:{issuer.server_port}")))
    serve = [argument["vary"], "serve", "--listen", "127.0.0.1:0", file]
    with running(serve, directory / "vary.log") as vary:
        probes = vary(r"metrics: http://(\S+)/metrics")[1]
        scrape = {"scrape_configs": [{"job_name": "vary", "static_configs": [{"targets": [probes]}]}],
                  "global": {"scrape_interval": "500ms", "evaluation_interval": "500ms"}, "rule_files": [argument["alerts"]]}
        configured = directory / "prometheus.yml"
        configured.write_text(json.dumps(scrape))
        command = [argument["prometheus"], f"--config.file={configured}", f"--storage.tsdb.path={directory}/data",
                   "--web.listen-address=127.0.0.1:0"]
        with running(command, directory / "prometheus.log") as prometheus:
            problems, count = check(argument, vary, prometheus)
    print("\n".join(problems) or f"{count} queries")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
