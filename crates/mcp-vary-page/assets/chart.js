// Bars: tokens by variant and server, and calls by time.

import { failures } from "./calls.js";
import { html } from "./dom.js";
import { addressOfMinute, count, minuteOfDay, momentOfDay, plural, saving } from "./format.js";
import { PlainTable } from "./parts.js";
import { narrow } from "./route.js";
import { Name, plain } from "./text.js";

/** Servers with a colour of their own; the others share the last one. */
const COLORS = 6;
/** The class with the colour of a server. */
const color = (servers, name) => `bar-${Math.min(servers.indexOf(name), COLORS)}`;

/** A row for each variant, with a bar whose parts are servers. */
export function TokenChart({ catalog, variants }) {
  const { servers, baseline } = catalog;
  const most = Math.max(1, ...variants.map((it) => it.tokens));
  const base = catalog.variants.find((it) => it.id === baseline)?.tokens;
  const used = servers.filter((server) => variants.some(({ byServer }) => byServer[server] > 0));
  const columns = ["variant", "#tokens", `#against ${plain(baseline, 16)}`, "#tools", "by server"];
  const rows = variants.map((variant) => [
    html`<${Name} value=${variant.id} limit=${40} /> ${variant.status !== "stable" && html`<span class="mark">${variant.status}</span>`}`,
    count(variant.tokens),
    variant.id === baseline ? "baseline" : saving(variant.tokens, base),
    count(variant.tools),
    html`<${Bar} ...${{ variant, servers, most }} />`,
  ]);
  return html`<section class="chart" aria-labelledby="cost">
    <h2 id="cost">What each list costs a model, in tokens</h2>
    <${PlainTable} label="Tokens of each list" ...${{ columns, rows }} />
    <${Legend} ...${{ servers, used }} hasTools=${catalog.own.length > 0} /></section>`;
}

function Bar({ variant, servers, most }) {
  const parts = servers.map((server) => [plain(server), variant.byServer[server] ?? 0, color(servers, server)]);
  const ofServers = parts.reduce((sum, [, tokens]) => sum + tokens, 0);
  parts.push(["tools of Vary", variant.tokens - ofServers, "bar-vary"]);
  let x = 0;
  const rects = parts.map(([, tokens, color]) => {
    const width = (tokens / most) * 100;
    const rect = width > 0 && html`<rect class=${color} x=${`${x}%`} width=${`${width}%`} height="100%" />`;
    x += width;
    return rect;
  });
  const named = parts.filter(([, tokens]) => tokens > 0).map(([name, tokens]) => `${name}: ${plural(tokens, "token")}`);
  return html`<svg role="img" aria-label=${named.join(", ") || "no tokens"}>${rects}</svg>`;
}

function Legend({ servers, used, hasTools }) {
  const { true: named = [], false: others = [] } = Object.groupBy(used, (it) => servers.indexOf(it) < COLORS || servers.length === COLORS + 1);
  const item = (server) => html`<li><${Swatch} kind=${color(servers, server)} /><${Name} value=${server} limit=${32} /></li>`;
  return html`<ul class="legend" aria-label="Colours of servers">
    ${named.map(item)}
    ${hasTools && html`<li><${Swatch} kind="bar-vary" />tools of Vary</li>`}
    ${others.length > 0 && html`<li><${Swatch} kind=${`bar-${COLORS}`} />${plural(others.length, "other server")}</li>`}
  </ul>`;
}

const Swatch = ({ kind }) => html`<svg class="swatch" aria-hidden="true"><rect class=${kind} width="100%" height="100%" /></svg>`;
/** The most bars of the time axis, and the fewest: one that begins an hour ago would be empty at first. */
const [MOST_BARS, FEWEST_BARS] = [60, 10];

/**
 * A time axis from the first to the last of `all`, or from `from` if that is earlier. Each bar has those of `calls` of its minute,
 * or of several for more than an hour. Bars with calls of `chosen` are marked, and so is the time before `since`, which lacks calls.
 */
export function CallChart({ all, calls, chosen, from, since, before }) {
  const minutes = all.map(({ at }) => Math.floor(at / 60));
  const last = Math.max(...minutes);
  const span = last - Math.min(...minutes, from > 0 ? Math.floor(from / 60) : last) + 1;
  const width = Math.ceil(span / MOST_BARS);
  const bars = Math.max(FEWEST_BARS, Math.ceil(span / width));
  const start = last + 1 - bars * width;
  const shown = calls.filter(({ at }) => at >= 60 * start);
  const groups = [...Map.groupBy(shown, ({ at }) => Math.floor((Math.floor(at / 60) - start) / width))].sort(([a], [b]) => a - b);
  const most = Math.max(...groups.map(([, some]) => some.length));
  const gap = Math.min(100, (100 * (since / 60 - start)) / (bars * width));
  const bar = ([at, some], index) => {
    const from = 60 * (start + at * width);
    return html`<${TimeBar} key=${from} ...${{ at, bars, from, width, most }} calls=${some} isChosen=${some.some((it) => chosen.has(it))} isEntry=${index === groups.length - 1} />`;
  };
  return html`<figure class="chart axis">
    ${gap > 0 && html`<div class="gap" style=${{ width: `${gap}%` }} title=${`${before}: ${momentOfDay(since)}`}>${gap > 12 && html`<span>${before}</span>`}</div>`}
    <svg role="group" aria-label="Calls by time" onKeyDown=${moveFocus}>${groups.map(bar)}</svg>
    <figcaption class="note">
      <span>${minuteOfDay(60 * start)}</span>
      <span><${Swatch} kind="all" /> calls <${Swatch} kind="errors" /> errors <${Swatch} kind="denied" /> denied<span class="unit"> · ${plural(width, "minute")} a bar</span></span>
      <span>${minuteOfDay(60 * last)}</span></figcaption></figure>`;
}

/** The calls of some minutes, as a link that filters the list by them, or by them no more. */
function TimeBar({ at, bars, from, width, calls, most, isChosen, isEntry }) {
  const { errors, denied } = failures(calls);
  const to = width > 1 ? from + 60 * (width - 1) : null;
  const time = to ? `${minuteOfDay(from)} to ${minuteOfDay(to)}` : minuteOfDay(from);
  const label = `${time}: ${plural(calls.length, "call")}, ${plural(errors, "error")}, ${count(denied)} denied`;
  const address = isChosen ? { from: null, to: null } : { from: addressOfMinute(from), to: to && addressOfMinute(to) };
  const x = { x: `${(100 * at) / bars}%`, width: `${100 / bars}%` };
  const rect = (kind, number) => {
    // Even one call can be seen.
    const height = Math.max(3, (90 * number) / most);
    return number > 0 && html`<rect class=${kind} ...${x} y=${`${100 - height}%`} height=${`${height}%`} />`;
  };
  return html`<a href=${narrow({ ...address, minutes: null })} tabindex=${isEntry ? 0 : -1} aria-label=${label} aria-current=${isChosen ? "true" : undefined}>
    <title>${label}</title><rect class="back" ...${x} height="100%" />${rect("all", calls.length)}${rect("errors", errors + denied)}${rect("denied", denied)}
  </a>`;
}

/** The arrow keys go from bar to bar: Tab has one stop for all. */
function moveFocus({ key, target }) {
  const bar = target.closest("a");
  ({ ArrowLeft: bar?.previousElementSibling, ArrowRight: bar?.nextElementSibling })[key]?.focus();
}
