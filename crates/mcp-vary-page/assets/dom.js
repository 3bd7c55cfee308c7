// The library that draws the page, in one place.

import htm from "./vendor/htm.js";
import { Component, Fragment, createRef, h, render } from "./vendor/preact.js";

export const html = htm.bind(h);
export { Component, Fragment, createRef, render };
