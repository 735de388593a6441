/** What must not be overlooked: the hub is gone, the run died, the agent is lost. */

import { h } from "./dom.js";
import { count } from "./format.js";
import { icon } from "./icons.js";

const GRACE_MS = 1_500; // a reconnect quicker than this is nobody's business
const SIGNALS = { 1: "SIGHUP", 2: "SIGINT", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL", 11: "SIGSEGV", 13: "SIGPIPE", 15: "SIGTERM" };
const NOTICES = {
  store_full: ["warning", "The disk is full: new data is shown but not kept."],
  records_dropped: ["info", "Some records were lost because the monitor could not keep up."],
  agent_lost: ["warning", "The monitor's agent is gone. The training goes on, but what is shown here is no longer new."],
  thread_agent: ["info", "No process could be started here, so the agent runs as a thread of the training process."],
};

export class Banner {
  element = h("div", { class: "banners" });
  #shown = "";
  #lostSinceMs = null;
  #connection = { state: "connecting" };
  #update = {};
  #failure = null;
  #timer = null;

  connect() {
    this.#timer = setInterval(this.#show, 500);
  }

  disconnect() {
    clearInterval(this.#timer);
  }

  /** The socket's state, see socket.js. */
  connection(connection) {
    this.#connection = connection;
    if (connection.state === "open") this.#lostSinceMs = null;
    else this.#lostSinceMs ??= performance.now();
    this.#show();
  }

  failure(error) {
    this.#failure = error;
    this.#show();
  }

  update(update) {
    this.#failure = null;
    this.#update = update;
    this.#show();
  }

  #show = () => {
    const lines = [this.#lost(), ending(this.#update), ...notices(this.#update)].filter((line) => line !== null);
    const json = JSON.stringify(lines);
    if (json === this.#shown) return;
    this.#shown = json;
    this.element.replaceChildren(...lines.map(([severity, text]) =>
      h("p", { class: `banner ${severity}`, role: severity === "info" ? "status" : "alert" }, icon(severity), h("span", {}, text))));
  };

  #lost() {
    if (this.#failure !== null && this.#failure.status !== 0) return ["critical", failureText(this.#failure)];
    const { state, reason } = this.#connection;
    if (state === "refused") return ["critical", `The hub refused this page: ${reason}.`];
    if (this.#lostSinceMs === null || performance.now() - this.#lostSinceMs < GRACE_MS) return null;
    return ["warning", "Connection to the hub lost. The training is not affected. Trying again…"];
  }
}

/** What to do about an answer that was an error. */
export function failureText({ status, message }) {
  if (status === 401 || status === 403) return "This page has no access. Open the address that torchvitals printed: it carries the token.";
  if (status === 404) return "There is no such run here. It may have been removed.";
  return `The hub answered with an error: ${message}`;
}

function notices({ notices: codes = [] }) {
  return codes.map((code) => NOTICES[code] ?? ["info", String(code)]);
}

/** How a run came to its end, when that was no good end. */
function ending({ status, exit, ranks = [] }) {
  if (status !== "killed" && status !== "crashed") return null;
  const rank = ranks.find(({ ended }) => ended && (ended.signal || ended.code)) ?? ranks.find(({ ended }) => ended) ?? {};
  const end = { ...rank.ended, ...exit };
  const what = status === "crashed" ? "Crashed" : "Killed";
  const step = end.last_step ?? rank.step ?? null;
  const phase = end.last_phase ?? rank.phase ?? null;
  const where = [
    step === null ? null : `at step ${count(step)}`,
    phase ? `during ${phase}` : null,
    ranks.length > 1 && Number.isFinite(rank.rank) ? `on rank ${rank.rank}` : null,
  ].filter(Boolean).join(", ");
  return ["critical", `${what}${how(end)}${where && ` ${where}`}.`];
}

function how({ signal, code, reason }) {
  const name = typeof signal === "string" ? signal : SIGNALS[signal];
  if (signal) return ` by ${name ?? "signal"}${typeof signal === "number" ? ` (${signal})` : ""}`;
  if (reason) return ` (${reason})`;
  return Number.isFinite(code) ? ` with exit status ${code}` : "";
}
