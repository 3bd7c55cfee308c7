// The check that the page and `/metrics` have the same numbers, while no client calls anything.

import { check, equal, holds, number } from "./browser.mjs";

/** The samples of a scrape: the name, the labels, and the value as text. */
async function scrape(address) {
  const text = await (await fetch(address)).text();
  const samples = text.split("\n").map((line) => line.match(/^(\w+)(?:\{(.*)\})? (\S+)$/s)).filter(Boolean);
  return samples.map(([, name, labels = "", value]) => ({ name, value: Number(value), labels: labelsOf(labels) }));
}

const labelsOf = (text) => Object.fromEntries([...text.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/gs)].map(([, label, value]) => [label, unescaped(value)]));
const unescaped = (value) => value.replace(/\\(.)/gs, (_, letter) => (letter === "n" ? "\n" : letter));

/** Runs the checks. `ask` gets what the page gets; `variants` are their ids; `metrics` is the address of a scrape. */
export async function compareWithMetrics({ visitor, ask, metrics, variants }) {
  const { page } = visitor;
  const samples = await scrape(metrics);
  const sum = (name, labels = {}) => {
    const found = samples.filter((it) => it.name === name && Object.entries(labels).every(([label, value]) => [value].flat().includes(it.labels[label] ?? "")));
    return found.reduce((sum, { value }) => sum + value, 0);
  };
  /** The rows of a table of the view, each with the texts of its cells. */
  const rowsOf = (label) => page.getByRole("region", { name: label, exact: true }).locator("tbody tr").evaluateAll((rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent.trim())));
  const labelsWith = (name, label) => [...new Set(samples.filter((it) => it.name === name).map((it) => it.labels[label] ?? ""))];

  await check("servers have the calls, errors, tools and states of /metrics", async () => {
    await visitor.view("/now");
    const rows = await rowsOf("Servers");
    const errors = (server) => {
      const types = labelsWith("mcp_client_operation_duration_seconds_count", "error_type");
      return sum("mcp_client_operation_duration_seconds_count", { server, error_type: types.filter((it) => it && it !== "cancelled") });
    };
    const expected = rows.map(([server]) => [
      number(sum("vary_upstream_tools", { server })),
      number(sum("mcp_client_operation_duration_seconds_count", { server })),
      number(errors(server)),
      sum("vary_upstream_up", { server }) === 1,
    ]);
    equal(rows.map(([, state, , tools, calls, errors]) => [tools === "–" ? "0" : tools, calls, errors, state === "up"]), expected, "servers");
    holds(expected.some(([, calls, errors]) => calls !== "0" && errors !== "0"), "no server has calls and errors");
    return JSON.stringify(expected);
  });

  await check("the calls of servers are those of their tools in /metrics", () => {
    for (const server of labelsWith("vary_tool_calls_total", "server")) {
      const method = "tools/call";
      equal(sum("vary_tool_calls_total", { server }), sum("mcp_client_operation_duration_seconds_count", { server, mcp_method_name: method }), server);
    }
  });

  await check("clients have the calls of /metrics", async () => {
    const rows = await rowsOf("Clients");
    for (const [, variant] of rows) {
      const shown = rows.filter((row) => row[1] === variant).reduce((sum, row) => sum + Number(row[2].replaceAll(",", "")), 0);
      equal(shown, sum("vary_requests_total", { variant, method: "tools/call" }), `calls of ${variant}`);
    }
    return `${rows.length} clients`;
  });

  await check("the counts of the status are the gauges of /metrics", async () => {
    const { uptime, counters = {}, ...status } = await ask("/api/status");
    // No metric has the limit, the rankings, or the number of tasks at the same moment.
    const { dedicatedConnectionsLimit, rankings, tasks, ...gauges } = status;
    const names = { memory: "vary_memory_bytes", resultStore: "vary_result_store_bytes" };
    const snake = (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    const found = [
      ...Object.entries(gauges).map(([name, value]) => [name, value, sum(names[name] ?? `vary_${snake(name)}`)]),
      ...Object.entries(counters).map(([reason, value]) => [reason, value, sum("vary_refused_messages_total", { reason })]),
    ].filter(([, value]) => typeof value === "number");
    equal(found.map(([name, value]) => [name, value]), found.map(([name, , metric]) => [name, metric]), "counts");
    holds(status.sessions > 0, "no session is counted");
    return `${found.length} counts`;
  });

  await check("variants have the tokens of /metrics", async () => {
    await visitor.view("/variants");
    await page.waitForSelector(".chart");
    const rows = await page.locator(".chart tbody tr").evaluateAll((rows) => rows.map((row) => [row.querySelector("bdi").textContent, row.querySelector("td").textContent]));
    equal(rows, variants.map((variant) => [variant, number(sum("vary_list_tokens", { variant }))]), "tokens");
  });

  await check("what access rules denied is that of /metrics", async () => {
    await visitor.view("/review");
    // The page reads what was refused every six seconds.
    for (let read = 0; read < 2; read++) await page.waitForResponse((response) => response.url().endsWith("/api/review"));
    const rules = labelsWith("vary_denied_total", "rule");
    const rows = (await rowsOf("Refused")).filter(([, by]) => rules.some((rule) => by.startsWith(rule)));
    equal(rows.length, rules.length, "rules");
    equal(rows.map(([denied]) => denied).sort(), rules.map((rule) => number(sum("vary_denied_total", { rule }))).sort(), "denied");
  });
}
