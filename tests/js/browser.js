/** Stand-ins for what only a browser has: the edge of the process. */

/** A WebSocket that a test plays the hub for. */
export class FakeWebSocket extends EventTarget {
  static OPEN = 1;
  static all = [];
  readyState = 1;
  sent = [];

  constructor(url) {
    super();
    this.url = url;
    FakeWebSocket.all.push(this);
  }

  send(text) {
    this.sent.push(text);
  }

  close() {
    this.readyState = 3;
  }

  hubSays(data) {
    this.dispatchEvent(Object.assign(new Event("message"), { data }));
  }

  hubDrops() {
    this.readyState = 3;
    this.dispatchEvent(new Event("close"));
  }
}

/** Puts the stand-ins in place; returns the targets, so that tests can count listeners. */
export function install() {
  FakeWebSocket.all = [];
  const count = (target) => {
    target.listeners = 0;
    const [add, remove] = [target.addEventListener.bind(target), target.removeEventListener.bind(target)];
    target.addEventListener = (...args) => { target.listeners += 1; add(...args); };
    target.removeEventListener = (...args) => { target.listeners -= 1; remove(...args); };
    return target;
  };
  globalThis.WebSocket = FakeWebSocket;
  globalThis.window = count(new EventTarget());
  globalThis.document = count(Object.assign(new EventTarget(), { hidden: false, baseURI: "http://hub/" }));
  return { window: globalThis.window, document: globalThis.document };
}
