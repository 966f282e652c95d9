// The connection to /ws/live: opened again for ever, first at once, then more and more patiently.

const NOT_KNOWN = 4401; // web/live.py: whoever looks must sign in first, and trying again is of no use
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 10_000;

/**
 * How long to wait before try number `tries` (from 0), with up to a quarter at random on top, so that the pages of
 * a whole team do not come back in the same instant after a restart of the server.
 * @param {number} tries @param {() => number} random from 0 to 1
 * @returns {number} milliseconds
 */
export function waitBefore(tries, random) {
  return Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** tries) * (1 + random() / 4);
}

/**
 * @typedef {object} Handlers
 * @property {() => void} opened the connection stands; a snapshot comes next
 * @property {(frame: string) => void} frame
 * @property {(retryAtMs: number) => void} lost with the time of the next try (Date.now milliseconds)
 * @property {() => void} ended the server knows this browser no more, and none is tried by itself
 */

export class LiveSocket {
  /** @param {() => string} address as of now: each try asks @param {Handlers} handlers @param {(url: string) => WebSocket} [open] */
  constructor(address, handlers, open = (url) => new WebSocket(url)) {
    this.address = address;
    this.handlers = handlers;
    this.open = open;
    this.tries = 0;
    /** @type {WebSocket | null} */
    this.socket = null;
    /** @type {ReturnType<typeof setTimeout> | null} */
    this.timer = null;
  }

  /** Tries now, whatever was waited for. */
  connect() {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    this.#drop();
    const socket = this.open(this.address());
    this.socket = socket;
    socket.onopen = () => this.handlers.opened();
    socket.onmessage = (event) => {
      this.tries = 0; // only a server that talks counts as reached: a proxy may accept and close
      this.handlers.frame(String(event.data));
    };
    socket.onclose = ({ code }) => (code === NOT_KNOWN ? this.#end() : this.#retry());
  }

  #end() {
    this.socket = null;
    this.handlers.ended();
  }

  #retry() {
    this.socket = null;
    const wait = waitBefore(this.tries, Math.random);
    this.tries += 1;
    this.timer = setTimeout(() => this.connect(), wait);
    this.handlers.lost(Date.now() + wait);
  }

  #drop() {
    const old = this.socket;
    this.socket = null;
    if (old !== null) {
      old.onopen = old.onmessage = old.onclose = null;
      old.close();
    }
  }
}
