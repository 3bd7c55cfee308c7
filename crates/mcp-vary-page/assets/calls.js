// The latest calls that Vary reported, of all the time that this page was open.

import { events } from "./api.js";

/** Older calls are forgotten: this bounds the memory of the page. */
export const MOST_CALLS = 500;

/** Milliseconds between two drawings of the list, however many calls come. */
const PACE = 250;

/** Milliseconds until a stream that ended is opened again. */
const RETRY = 3000;

export class CallLog {
  /** The latest first. */
  calls = [];
  seen = 0;
  dropped = 0;
  waiting = [];

  /** Follows the calls until `stop`; `changed` is called at most four times a second. */
  start(changed, failed) {
    this.abort = new AbortController();
    this.changed = changed;
    this.timer = setInterval(() => this.flush(), PACE);
    this.follow(this.abort.signal, failed);
  }

  stop() {
    this.abort.abort();
    clearInterval(this.timer);
  }

  async follow(signal, failed) {
    while (!signal.aborted) {
      try {
        for await (const { event, data } of events("/api/events", signal)) this.take(event, data);
      } catch (error) {
        if (signal.aborted) return;
        failed(error);
        if (error.status === 401) return;
      }
      await new Promise((resolve) => setTimeout(resolve, RETRY));
    }
  }

  take(event, data) {
    if (event === "dropped") this.dropped += data.count;
    if (event !== "call") return;
    // Each stream numbers its calls from 1.
    this.seen += 1;
    this.waiting.push({ ...data, id: this.seen });
    if (this.waiting.length > MOST_CALLS) this.waiting.shift();
  }

  flush() {
    if (this.waiting.length === 0 || document.hidden) return;
    this.calls = [...this.waiting.reverse(), ...this.calls].slice(0, MOST_CALLS);
    this.waiting = [];
    this.changed();
  }
}
