// The first ten of a list, and a button that shows the others.

import { html } from "./dom.js";
import { count } from "./format.js";
import { Folded } from "./text.js";

const MOST = 10;

/** `show(some)` makes the elements of the first ten, or of all once they are wanted, as they are at first if one `isChosen`. */
export const FirstTen = ({ all, show, isChosen = () => false }) =>
  html`<${Folded} isLong=${all.length > MOST} isOpenFirst=${all.slice(MOST).some(isChosen)}
    more=${`${count(all.length - MOST)} more`} less="only the first ten">${(isWhole) => show(isWhole ? all : all.slice(0, MOST))}<//>`;
