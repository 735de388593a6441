/** What must not be overlooked: the hub is gone, the run died, the agent is lost. */

import { N, t, word } from "../locale/i18n.js";
import { Notify } from "./browser.js";
import { h, icon } from "./dom.js";
import { count } from "./format.js";

const GRACE_MS = 1_500; // a reconnect quicker than this is nobody's business
const SIGNALS = {
  1: "SIGHUP", 2: "SIGINT", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL", 11: "SIGSEGV", 13: "SIGPIPE",
  15: "SIGTERM",
};
const NOTICES = {
  store_full: ["warning", N("The disk is full: new data is shown but not kept.")],
  records_dropped: ["info", N("Some records were lost because the monitor could not keep up.")],
  agent_lost: [
    "warning", N("The monitor's agent is gone. The training goes on, but what is shown here is no longer new."),
  ],
  alert_retried: ["info", N("An alert was not accepted by its service at once; it is tried again.")],
  alert_not_sent: ["warning", N("An alert could not be sent. torchvitals alert-test URL shows what is wrong.")],
  alerts_limited: ["info", N("More alerts came up than are sent within ten minutes; those beyond were left out.")],
  thread_agent: ["info", N("No process could be started here, so the agent runs as a thread of the training process.")],
};

export class Banner {
  #lines = h("div", { class: "banner-lines" });
  #notify = new Notify();
  element = h("div", { class: "banners" }, this.#lines);
  offer = this.#notify.element; // no news: it stands where it takes no place from them
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
    if (["open", "polling"].includes(connection.state)) this.#lostSinceMs = null;
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
    this.#notify.update(update);
    this.#show();
  }

  #show = () => {
    const lines = [this.#lost(), ending(this.#update), ...notices(this.#update)].filter((line) => line !== null);
    const json = JSON.stringify(lines);
    if (json === this.#shown) return;
    this.#shown = json;
    this.#lines.replaceChildren(
      ...lines.map(([severity, text]) =>
        h(
          "p", { class: `banner ${severity}`, role: severity === "info" ? "status" : "alert" }, icon(severity),
          h("span", {}, text),
        ),
      ),
    );
  };

  #lost() {
    if (this.#failure !== null && this.#failure.status !== 0) return ["critical", failureText(this.#failure)];
    const { state, reason } = this.#connection;
    if (state === "refused") return ["critical", t("The hub refused this page: {reason}.", { reason })];
    if (this.#lostSinceMs === null || performance.now() - this.#lostSinceMs < GRACE_MS) return null;
    return ["warning", t("Connection to the hub lost. The training is not affected. Trying again…")];
  }
}

/** What to do about an answer that was an error. */
export function failureText({ status, message }) {
  if (status === 401 || status === 403)
    return t("This page has no access. Open the address that torchvitals printed: it carries the token.");
  if (status === 404) return t("There is no such run here. It may have been removed.");
  return t("The hub answered with an error: {message}", { message });
}

function notices({ notices: codes = [] }) {
  return codes.map((code) => (NOTICES[code] ? [NOTICES[code][0], t(NOTICES[code][1])] : ["info", String(code)]));
}

/** How a run came to its end, when that was no good end. */
function ending({ status, exit, ranks = [] }) {
  if (status !== "killed" && status !== "crashed") return null;
  const rank =
    ranks.find(({ ended }) => ended && (ended.signal || ended.code)) ?? ranks.find(({ ended }) => ended) ?? {};
  const end = { ...rank.ended, ...exit };
  const step = end.last_step ?? rank.step ?? null;
  const phase = end.last_phase ?? rank.phase ?? null;
  const where = [
    step === null ? null : t("at step {step}", { step: count(step) }),
    phase ? t("during {phase}", { phase: word(phase) }) : null,
    ranks.length > 1 && Number.isFinite(rank.rank) ? t("on rank {rank}", { rank: rank.rank }) : null,
  ].filter(Boolean).join(t(", "));
  const what = how(status === "crashed", end);
  return ["critical", where ? t("{what} {where}.", { what, where }) : t("{what}.", { what })];
}

function how(crashed, { signal, code, reason }) {
  const name = typeof signal === "string" ? signal : SIGNALS[signal];
  if (signal) {
    const by = `${name ?? t("signal")}${typeof signal === "number" ? ` (${signal})` : ""}`;
    return crashed ? t("Crashed by {signal}", { signal: by }) : t("Killed by {signal}", { signal: by });
  }
  if (reason) return crashed ? t("Crashed ({reason})", { reason }) : t("Killed ({reason})", { reason });
  if (!Number.isFinite(code)) return crashed ? t("Crashed") : t("Killed");
  return crashed ? t("Crashed with exit status {code}", { code }) : t("Killed with exit status {code}", { code });
}
