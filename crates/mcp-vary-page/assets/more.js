// The first ten of a list, and a button that shows the others.

import { Component, html } from "./dom.js";
import { count } from "./format.js";

const MOST = 10;

/** `show(some)` makes the elements of the first ten, or of all once they are wanted, as they are at first if one `isChosen`. */
export class FirstTen extends Component {
  render({ all, show, isChosen }, { isOpen = !!isChosen && all.slice(MOST).some(isChosen) }) {
    const toggle = () => this.setState({ isOpen: !isOpen });
    return html`
      ${show(isOpen ? all : all.slice(0, MOST))}
      ${all.length > MOST && html` <button type="button" class="quiet" aria-expanded=${String(isOpen)} onClick=${toggle}>
        ${isOpen ? "only the first ten" : `${count(all.length - MOST)} more`}
      </button>`}
    `;
  }
}
