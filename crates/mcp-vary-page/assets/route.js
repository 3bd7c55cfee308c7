// The address of a view: `#/variants?server=git`. All that a view shows by choice is there, so that it can be sent.

/** The view and its parameters that the address names. */
export function route() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  return { view: path || "now", params: new URLSearchParams(query ?? "") };
}

/** The address of a view; parameters without a value are left out. */
export function link(view, params = {}) {
  const given = Object.entries(params).filter(([, value]) => value);
  const query = new URLSearchParams(given).toString();
  return `#/${view}${query && `?${query}`}`;
}

/** The address of the current view with some parameters changed. */
export function linkWith(changes) {
  const { view, params } = route();
  return link(view, { ...Object.fromEntries(params), ...changes });
}

/** The address of the current view with other filters. The call that is open closes: it may not be among those. */
export const narrow = (changes) => linkWith({ ...changes, call: null });

/** Goes to another view, or to a choice that the back button should undo. */
export function go(address) {
  location.hash = address;
}

/** Changes parameters without an entry in the history, as for each letter in a filter. */
export function replace(changes) {
  history.replaceState(null, "", linkWith(changes));
  dispatchEvent(new HashChangeEvent("hashchange"));
}
