// The drafts of this tab. They outlast a reload of the page; nobody else gets them before they are saved.

import { same } from "./draft-value.js";

const KEY = "vary-drafts";

/** What is changed, by variant: `{value, clients, saved}`, where `clients` is a text, and `saved` is what the file had. */
class Drafts extends Map {
  set(id, draft) {
    super.set(id, draft);
    return this.store();
  }

  delete(id) {
    super.delete(id);
    return this.store();
  }

  store() {
    sessionStorage.setItem(KEY, JSON.stringify([...this]));
    return this;
  }

  /** Drops a draft from before the page was loaded if it is of another variant than the file has now. Returns whether it did. */
  dropOutdated(id, saved) {
    const before = unchecked.delete(id) && this.get(id)?.saved;
    const isOutdated = !!before && !same(before, saved);
    if (isOutdated) this.delete(id);
    return isOutdated;
  }
}

export const drafts = new Drafts(JSON.parse(sessionStorage.getItem(KEY) ?? "[]"));
const unchecked = new Set(drafts.keys());
