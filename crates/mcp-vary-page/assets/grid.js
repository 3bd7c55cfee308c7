// A table of thousands of rows: only those in sight are in the document. One cell can be reached by Tab, the others
// from there by the arrow keys, as in any spreadsheet. Links in cells are not reached by Tab: Enter follows that of a cell.

import { Component, createRef, html } from "./dom.js";

/** Rows above and below those in sight, so that scrolling shows no gaps. */
const MARGIN = 12;
/** Where a character is typed, or closes a dialog. */
const TYPED = 'input:not([type="checkbox"], [type="radio"]), select, textarea, dialog';

/** Whether a key is for the page: it has no modifier, nobody types with it but in an element of `typed`, and nothing has used it. */
export const isShortcut = (event, typed = "none") =>
  !(event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.defaultPrevented) &&
  !event.target.closest?.(`:is(${TYPED}):not(${typed})`);

/**
 * `columns`: `{id, head, kind, width}` each, where `kind` is a class of the style sheet that sets the width, if there is no `width`.
 * `cell(row, column)`: the content. A row with `tools` has the sums of those below; `isFolded`: whether they are not shown, if they can be.
 * `open(row, column)`: Enter or a click, but on a link. `foot`: rows of cells below. `selected(row, column)`: the cell that is open.
 * `handle`: a reference that gets the table, since a component has no `ref`.
 */
export class Grid extends Component {
  box = createRef();
  state = { top: 0, height: 800, row: 0, column: 0 };

  componentDidMount() {
    if (this.props.handle) this.props.handle.current = this;
    this.resized = new ResizeObserver(() => this.measure());
    this.resized.observe(this.box.current);
    this.measure();
  }

  componentWillUnmount = () => this.resized.disconnect();

  /** The rows in sight are those between the sticky head and foot. */
  measure() {
    const box = this.box.current;
    this.rowHeight = parseFloat(getComputedStyle(box).getPropertyValue("--row"));
    const height = (part) => box.querySelector(part)?.offsetHeight ?? 0;
    this.setState({ height: box.clientHeight - height("thead") - height("tfoot") }, () => {
      // Details below make the table smaller: the row that they are of stays in sight.
      const open = box.querySelector('[aria-selected="true"]');
      if (open) this.reveal(Number(open.dataset.cell.split("-")[0]));
    });
  }

  range() {
    const height = this.rowHeight ?? 28;
    const fitting = Math.ceil(this.state.height / height);
    // There may be fewer rows than when the table was scrolled.
    const top = Math.min(Math.floor(this.state.top / height), Math.max(0, this.props.rows.length - fitting));
    return [Math.max(0, top - MARGIN), Math.min(this.props.rows.length, top + fitting + 1 + MARGIN)];
  }

  scrolled = (event) => this.setState({ top: event.currentTarget.scrollTop });

  /** Scrolls the table, unless it is gone meanwhile, until the row is in sight. */
  reveal(row) {
    const box = this.box.current;
    if (!box) return;
    const top = row * this.rowHeight;
    const lowest = top + this.rowHeight - this.state.height;
    box.scrollTop = Math.max(lowest, Math.min(top, box.scrollTop));
  }

  /** Moves the focus to a cell, which is then in sight. */
  focus(row, column) {
    const box = this.box.current;
    if (!box) return;
    this.reveal(row);
    this.setState({ top: box.scrollTop, row, column }, () => {
      const cell = box.querySelector(`[data-cell="${row}-${column}"]`);
      cell?.focus({ preventScroll: true });
      cell?.scrollIntoView({ block: "nearest", inline: "nearest" });
    });
  }

  /** Returns to the cell that had the focus last, or that one of another row. */
  refocus(row = this.state.row) {
    this.focus(row, this.state.column);
  }

  pressed = (event) => {
    const at = event.target.closest("[data-cell]");
    if (!at || !isShortcut(event)) return;
    const [row, column] = at.dataset.cell.split("-").map(Number);
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      const follow = at.querySelector("a[href]");
      return follow ? follow.click() : this.open(row, column);
    }
    const target = this.target(event.key, row, column);
    if (!target) return;
    event.preventDefault();
    this.focus(...target);
  };

  /** The cell that a key leads to. */
  target(key, row, column) {
    const { rows, columns } = this.props;
    const page = Math.max(1, Math.floor(this.state.height / this.rowHeight) - 1);
    const within = (row) => Math.min(rows.length - 1, Math.max(0, row));
    const moves = {
      ArrowDown: [within(row + 1), column],
      ArrowUp: [within(row - 1), column],
      PageDown: [within(row + page), column],
      PageUp: [within(row - page), column],
      ArrowRight: [row, Math.min(columns.length - 1, column + 1)],
      ArrowLeft: [row, Math.max(0, column - 1)],
      Home: [0, column],
      End: [rows.length - 1, column],
    };
    return moves[{ j: "ArrowDown", k: "ArrowUp" }[key] ?? key];
  }

  open(row, column) {
    const { open, rows, columns } = this.props;
    open?.(rows[row], columns[column]);
  }

  clicked = (event) => {
    const cell = event.target.closest("[data-cell]");
    if (cell && !event.target.closest("a, button")) this.open(...cell.dataset.cell.split("-").map(Number));
  };

  renderCell(row, at, column, index, entry) {
    const { cell, open, selected } = this.props;
    const id = `${at}-${index}`;
    const properties = {
      key: column.id,
      class: column.kind,
      "data-cell": id,
      role: index === 0 ? "rowheader" : "gridcell",
      tabindex: id === entry ? 0 : -1,
      "aria-selected": open ? String(!!selected?.(row, column)) : undefined,
      onFocus: () => this.setState({ row: at, column: index }),
    };
    const content = cell(row, column);
    if (index > 0) return html`<td ...${properties}>${content}</td>`;
    return html`<th ...${properties} scope="row" aria-expanded=${row.isFolded === undefined ? undefined : !row.isFolded}>${content}</th>`;
  }

  renderRow(row, at, entry) {
    return html`<tr key=${at} role="row" class=${row.tools ? "group" : ""} aria-rowindex=${at + 2}>
      ${this.props.columns.map((column, index) => this.renderCell(row, at, column, index, entry))}</tr>`;
  }

  render({ label, columns, rows, foot = [], open }) {
    const [first, end] = this.range();
    // The cell that Tab leads to: the last one that had the focus, or the nearest that is in the document.
    const entry = `${Math.min(end - 1, Math.max(first, this.state.row))}-${this.state.column}`;
    return html`<div class=${`grid ${open ? "opens" : ""}`} ref=${this.box} onScroll=${this.scrolled}>
      <table role="grid" style=${{ "--columns": columns.length }} aria-keyshortcuts="j k" aria-label=${label} aria-rowcount=${rows.length + 1 + foot.length}
        onKeyDown=${this.pressed} onClick=${this.clicked}>
        <colgroup>${columns.map(({ id, kind, width }) => html`<col key=${id} class=${kind} style=${width && { width }} />`)}</colgroup>
        <thead title="Keys: j, k and the arrows move, Enter opens, Escape closes.">
          <tr aria-rowindex="1">${columns.map(({ id, kind, head }) => html`<th key=${id} scope="col" class=${kind}>${head}</th>`)}</tr>
        </thead>
        <tbody>
          <${Space} rows=${first} columns=${columns.length} height=${this.rowHeight} />
          ${rows.slice(first, end).map((row, at) => this.renderRow(row, first + at, entry))}
          <${Space} rows=${rows.length - end} columns=${columns.length} height=${this.rowHeight} /></tbody>
        ${foot.length > 0 && html`<tfoot>
          ${foot.map(([name, ...cells], at) => html`<tr aria-rowindex=${rows.length + 2 + at}>
            <th scope="row">${name}</th>${cells.map((cell, index) => html`<td class=${columns[index + 1].kind}>${cell}</td>`)}
          </tr>`)}</tfoot>`}</table></div>`;
  }
}

/** The place of rows that are not in the document. */
function Space({ rows, columns, height = 28 }) {
  if (rows <= 0) return null;
  return html`<tr class="space" aria-hidden="true"><td colspan=${columns} style=${{ height: `${rows * height}px` }}></td></tr>`;
}
