/** Socket.IO v5 packets inside Engine.IO v4 messages, as text. Pure functions, no connection. */

const MAX_MESSAGE = 16 * 1024 * 1024; // characters; the hub's own limit lies far below
const ENGINE = { open: "0", close: "1", ping: "2", pong: "3", message: "4", noop: "6" };
const KINDS = ["connect", "disconnect", "event", "ack", "error", "binaryEvent", "binaryAck"];

/** The answer to a ping. */
export const PONG = ENGINE.pong;

/** The message that enters a namespace. */
export function connectPacket(namespace) {
  return `40${namespace},`;
}

/** The message that leaves a namespace. */
export function disconnectPacket(namespace) {
  return `41${namespace},`;
}

/** An event; with `id` (whole number) the hub is asked to acknowledge it. */
export function eventPacket(namespace, name, data, id = null) {
  return `42${namespace},${id ?? ""}${JSON.stringify([name, data])}`;
}

/** The acknowledgement of the hub's event `id`. */
export function ackPacket(namespace, id, ...data) {
  return `43${namespace},${id}${JSON.stringify(data)}`;
}

/**
 * One received message as `{type, …}`: "open" {settings}, "close", "ping", "noop", "connect",
 * "disconnect", "error" {data}, "event" {name, args, id}, "ack" {id, args}. Anything else, and
 * anything malformed or for another namespace, is `{type: "unknown"}`: never an exception.
 */
export function parse(text, namespace) {
  if (typeof text !== "string" || text.length === 0 || text.length > MAX_MESSAGE) return { type: "unknown" };
  if (text[0] === ENGINE.open) return asOpen(json(text.slice(1)));
  if (text === ENGINE.close) return { type: "close" };
  if (text[0] === ENGINE.ping) return { type: "ping" };
  if (text === ENGINE.noop) return { type: "noop" };
  const match = text.slice(0, 256).match(/^4([0-6])(?:(\/[^,]{0,100}),?)?(\d{0,15})/);
  if (match === null || (match[2] ?? "/") !== namespace) return { type: "unknown" };
  const rest = text.slice(match[0].length);
  return asPacket(KINDS[Number(match[1])], match[3] === "" ? null : Number(match[3]), rest === "" ? null : json(rest));
}

function asOpen(settings) {
  const valid = settings !== null && Number.isFinite(settings.pingInterval) && Number.isFinite(settings.pingTimeout);
  return valid ? { type: "open", settings } : { type: "unknown" };
}

function asPacket(kind, id, data) {
  if (kind === "connect" || kind === "disconnect") return { type: kind };
  if (kind === "error") return { type: kind, data };
  if (kind === "event" && Array.isArray(data) && typeof data[0] === "string") {
    return { type: kind, name: data[0], args: data.slice(1), id };
  }
  if (kind === "ack" && Array.isArray(data) && id !== null) return { type: kind, id, args: data };
  return { type: "unknown" };
}

function json(text) {
  try {
    const value = JSON.parse(text);
    return typeof value === "object" ? value : null;
  } catch {
    return null;
  }
}
