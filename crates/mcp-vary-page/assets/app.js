// The page: its frame, the token, and the view that the address names.

import { codeIn, exchange, get, hasToken, setToken, takeToken } from "./api.js";
import { log, quoted } from "./calls.js";
import { Compare } from "./compare.js";
import { Component, createRef, html, render } from "./dom.js";
import { Draft } from "./draft.js";
import { Experiments } from "./experiments.js";
import { duration, timeOfDay } from "./format.js";
import { isShortcut } from "./grid.js";
import { Now } from "./now.js";
import { Copy } from "./parts.js";
import { Review } from "./review.js";
import { go, link, route } from "./route.js";
import { actionsOf } from "./servers.js";
import { Variants } from "./variants.js";
import { Who } from "./who.js";

/** The views, each with its name and the key that leads to it after `g`. */
const VIEWS = {
  // An address may name any member of an object.
  __proto__: null,
  now: ["Now", Now, "n"],
  variants: ["Variants", Variants, "v"],
  calls: ["Compare calls", Compare, "c"],
  draft: ["Draft", Draft, "d"],
  who: ["Who gets what", Who, "w"],
  review: ["Problems", Review, "p"],
  experiments: ["Experiments", Experiments, "e"],
};

/** Milliseconds between two readings of the status. */
const INTERVAL = 2000;
const NOT_THE_TOKEN = "this is not the token; type `vary open` in a terminal, which opens the page with the right one";
const ANOTHER_TOKEN = "the token of this tab is not that of Vary any more; type `vary open` in a terminal";

class App extends Component {
  main = createRef();
  keys = createRef();
  command = createRef();
  state = { route: route(), refused: this.props.refused };
  polls = 0;

  componentDidMount() {
    addEventListener("hashchange", () => this.moved());
    addEventListener("keydown", this.pressed);
    this.poll();
    setInterval(() => document.hidden || this.state.locked || this.poll(), INTERVAL);
    // Browsers open few connections to a server, for all tabs.
    addEventListener("visibilitychange", () => (document.hidden ? log.stop() : this.poll()));
  }

  moved() {
    if (codeIn(location.hash)) return location.reload();
    const isOther = this.state.route.view !== route().view;
    // A view that is opened while Vary is silent has old answers, and begins anew once Vary answers.
    this.setState(({ silentSince, isOld }) => ({ route: route(), isOld: isOther ? !!silentSince : isOld }), () => {
      if (!isOther) return;
      document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
      this.main.current?.querySelector("h1")?.focus();
    });
  }

  /** The keys of each view; one who types means the character, but for those that leave a search. */
  pressed = (event) => {
    if (!isShortcut(event, SEARCH)) return;
    const { key, target } = event;
    const [search, cell] = [SEARCH, '.grid [data-cell][tabindex="0"]'].map((it) => this.main.current.querySelector(it));
    const view = this.hasGone && Object.keys(VIEWS).find((it) => VIEWS[it][2] === key);
    const enter = cell ? () => cell.focus() : () => this.step(1);
    const ofView = { "/": search && (() => search.focus()), j: enter, k: cell ? enter : () => this.step(-1), "?": this.showKeys };
    if (target.matches?.(ROWS)) ofView.Enter = () => target.querySelector("a, button")?.click();
    const ofSearch = { Escape: () => this.leave(target, cell), ArrowDown: enter };
    const act = target.matches?.(SEARCH) ? ofSearch[key] : view ? () => go(link(view)) : ofView[key];
    this.hasGone = key === "g";
    if (!act) return;
    event.preventDefault();
    act();
  };

  /** Empties a search; from an empty one, goes to the list, at the cell that had the focus last. */
  leave(field, cell) {
    if (!field.value) return (cell ?? this.main.current.querySelector("h1")).focus();
    field.value = "";
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }

  /** Moves the focus to the next or the last row of the tables and lists of a view that has no grid. */
  step(by) {
    const rows = [...this.main.current.querySelectorAll(ROWS)].filter((it) => it.checkVisibility());
    const at = rows.indexOf(document.activeElement.closest(ROWS));
    const row = rows[at < 0 ? 0 : at + by];
    row?.setAttribute("tabindex", "-1");
    row?.focus();
  }

  /** The focus returns to where it was, however the keys are closed. */
  showKeys = () => {
    const before = document.activeElement;
    this.keys.current.addEventListener("close", () => before.focus(), { once: true });
    this.keys.current.showModal();
  };

  async poll() {
    try {
      const status = await get("/api/status", true);
      // What is looked for in all lists changes seldom.
      const review = this.polls++ % 3 === 0 ? await get("/api/review") : this.state.review;
      // Readers of the page, and a page without a file, get none.
      this.rules ??= get("/api/rules").then(({ rules: [rule], directory }) => this.setState({ file: rule?.file, directory }), () => {});
      const [readAt, { begun }] = [Date.now() / 1000, this.state.status ?? {}];
      status.begun = Math.abs(readAt - status.uptime - begun) < 5 ? begun : readAt - status.uptime;
      this.setState({ status, review, readAt, silentSince: null, isOld: false, error: null, locked: false });
      log.start();
    } catch (error) {
      const silentSince = error.status === 401 ? null : (this.state.silentSince ?? new Date());
      this.setState({ error, silentSince });
      this.failed(error);
    }
  }

  /** Without a valid token there is nothing to show but the field for it. */
  failed = (error) => {
    if (error.status !== 401) return;
    this.setState(({ refused }) => ({ locked: true, status: null, refused: refused || (hasToken() && ANOTHER_TOKEN) }));
  };

  /** A text is the token, or has a code for it: the address that `vary open --print` prints, or the code alone. */
  unlock = async (text) => {
    const code = codeIn(text);
    const failed = await exchange(code ?? text).catch((error) => error);
    if (failed && code) return this.setState({ refused: failed.message });
    if (failed) setToken(text);
    await this.poll();
    this.setState(({ locked }) => ({ refused: locked && NOT_THE_TOKEN }));
  };

  render(_, { route, status, review, file, directory, readAt, silentSince }) {
    const command = ["vary serve", file ? quoted(file) : "FILE", ...(directory ? ["--directory", quoted(directory)] : [])].join(" ");
    const [title, View] = VIEWS[route.view] ?? [];
    document.title = `${title ?? "Not found"} · Vary`;
    return html`
      <a class="skip" href="#main" onClick=${this.skip}>Skip to the content</a>
      <${Header} ...${{ view: route.view, status, review, readAt, silentSince, showKeys: this.showKeys }} />
      <div role="alert">
        ${silentSince &&
        html`<div class="silent"><span>Vary has not answered since ${silentSince.toLocaleTimeString("en-GB")}; the page shows its state at that time. Start it, with its other flags if there were any: <code ref=${this.command}>${command}</code></span>
          <${Copy} button="Copy the command" text=${command} box=${this.command} /></div>`}
      </div>
      <main id="main" ref=${this.main} class=${silentSince ? "gone" : ""}>
        <h1 class="for-readers" tabindex="-1">${title ?? "Not found"}</h1>
        ${this.content(View)}</main>
      <${Keys} dialog=${this.keys} />
    `;
  }

  content(View) {
    const { route, status, review, error, isOld, locked, refused } = this.state;
    if (!View) return html`<p class="empty">There is no such view. The views are above.</p>`;
    if (locked) return html`<${Locked} unlock=${this.unlock} refused=${refused} />`;
    return html`<${View} key=${!!isOld} params=${route.params} ...${{ status, review, error, failed: this.failed }} />`;
  }

  /** The address of a view is in the fragment, so a link to an element cannot be. */
  skip = (event) => {
    event.preventDefault();
    this.main.current.querySelector("h1").focus();
  };
}

const SEARCH = 'input[type="search"]';
/** What `j` and `k` go through in a view without a grid. */
const ROWS = ":is(.plain tbody tr, .server-problems li, .steps li, .causes li)";

const KEYS = {
  "/": "go to the search of the view; Escape empties it, then leaves it, and ↓ leads to the list",
  "j, k": "go to the list of the view, then down and up",
  "↑ ↓ ← →": "move through a list; ↑ ↓, j and k beside an open call: open the one above or below",
  Enter: "open a row, or follow its link",
  Escape: "close what is open, and return to its row",
  "?": "show these keys",
  ...Object.fromEntries(Object.values(VIEWS).map(([title, , key]) => [`g ${key}`, `go to ${title}`])),
};

const Keys = ({ dialog }) => html`<dialog ref=${dialog} aria-labelledby="keys">
  <h2 id="keys">Keys</h2>
  <dl class="facts">${Object.entries(KEYS).map(([key, what]) => html`<dt><kbd>${key}</kbd></dt><dd>${what}</dd>`)}</dl>
  <button type="button" onClick=${() => dialog.current.close()}>Close</button></dialog>`;

const MARK = html`<svg width="18" height="18" viewBox="0 0 16 16" aria-hidden="true"><path d="M2 3l6 10 6-10" stroke-width="3" /></svg>`;

function Header({ view, status, review, readAt, silentSince, showKeys }) {
  const isLive = status && !silentSince;
  // How many servers, clients and settings need an action.
  const { number, label } = actionsOf(status ?? {}, review);
  const badge = number > 0 && html` <span class="badge" role="img" aria-label=${label} title=${label}>${number}</span>`;
  const item = ([id, [title]]) =>
    html`<li><a href=${link(id)} aria-current=${id === view ? "page" : undefined}>${title.split(" ")[0]}<span>${title.replace(/^\w+/, "")}</span>${id === "review" && badge}</a></li>`;
  return html`<header class="top">
    <span class="brand">${MARK}<span>Vary</span></span>
    <nav aria-label="Views"><ul>${Object.entries(VIEWS).map(item)}</ul></nav>
    <p class="pulse">
      ${isLive && html`<span class="version">${status.version}, up for ${duration(status.uptime)} · </span>`}
      <span role="status" class=${isLive ? "state live" : ""}>${isLive && "live"}</span>
      ${isLive && html`<span class="as-of">${" "}· as of </span>${timeOfDay(readAt)}`}
      ${" "}<button type="button" class="quiet" aria-haspopup="dialog" onClick=${showKeys}>Keys</button>
    </p></header>`;
}

function Locked({ unlock, refused }) {
  const submit = (event) => {
    event.preventDefault();
    unlock(event.target.elements.token.value.trim());
  };
  return html`<form class="locked" onSubmit=${submit}>
    <p>This page needs a token. <code>vary open</code> opens it with one, and <code>vary open --print</code> prints an address that does so once, within a minute; this field takes that, too.</p>
    <label class="field">Token
      <input name="token" type="password" required autocomplete="off" spellcheck=${false} aria-describedby=${refused ? "refused" : undefined} />
    </label>
    <button>Show the page</button>
    ${refused && html`<p id="refused" class="problem" role="alert">${refused}</p>`}</form>`;
}

const refused = await takeToken().catch((error) => error.message);
render(html`<${App} refused=${refused} />`, document.getElementById("page"));
