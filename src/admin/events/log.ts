/**
 * The journal as lines on stdout: JSON as Kubernetes' components write it, or text for people. Our own lines instead
 * of pino's: its destination waits in a loop when a pipe's reader stalls, and the data path would wait with it. Here
 * what cannot be written is dropped and counted, whatever becomes of stdout (F20).
 */
import { type Clock, dateOf } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";
import type { Entry, Journal } from "../../events/journal.ts";

/** What is needed of process.stdout, which takes a pipe's bytes without waiting, and goes on after an error. */
export type Out = {
  write(text: string, done: (reason?: Error | null) => void): unknown;
  on(name: "error", listener: () => void): unknown;
  readonly writableLength: number;
};

export type LogOptions = {
  readonly out: Out;
  readonly clock: Clock;
  readonly format: "JSON" | "Text";
  readonly accessLog: "None" | "Errors" | "LongRunning" | "All";
};

type Value = string | number | readonly string[];

/** Where an entry tells of something bad, the field that says what; written as `err`, in klog's way. */
const complaints = new Map<Entry["kind"], string>([
  ["listener.lost", "reason"],
  ["downstream_connection.refused", "reason"],
  ["request.failed", "message"],
  ["passthrough.refused", "message"],
  ["config.refused", "problems"],
  ["certificate.refused", "problem"],
  ["discovery.failed", "reason"],
  ["internal.error", "message"],
  ["successor.failed", "reason"],
  ["operation.refused", "reason"],
  ["review.failed", "reason"],
]);

/** Writes every entry from now on, until it is stopped. */
export class Log {
  readonly #options: LogOptions;
  readonly #unsubscribe: () => void;
  #second = 0;
  #lines = 0;
  #dropped = 0;
  #untold = 0;

  constructor(journal: Journal, options: LogOptions) {
    this.#options = options;
    // Without a listener an EPIPE or ENOSPC would end the process; each write's own callback counts it.
    options.out.on("error", () => {});
    this.#unsubscribe = journal.subscribe((entry) => this.#take(entry));
  }

  /** Lines that were not written. */
  get dropped(): number {
    return this.#dropped;
  }

  stop(): void {
    this.#unsubscribe();
  }

  #take(entry: Entry): void {
    if (!isWanted(entry, this.#options.accessLog)) return;
    if (!this.#hasRoom()) {
      this.#dropped++;
      this.#untold++;
      return;
    }
    if (this.#untold > 0) this.#write("log.dropped", [["count", this.#untold]]);
    this.#untold = 0;
    this.#write(entry.kind, fieldsOf(entry));
  }

  #hasRoom(): boolean {
    const second = Math.floor(this.#options.clock.now() / 1000);
    if (second !== this.#second) this.#lines = 0;
    this.#second = second;
    return (
      this.#lines < limits.logLinesPerSecond && this.#options.out.writableLength < limits.logBacklogBytes
    );
  }

  #write(name: string, fields: readonly (readonly [string, Value])[]): void {
    const { out, clock, format } = this.#options;
    const line =
      format === "JSON" ? jsonLine(clock.wall(), name, fields) : textLine(clock.wall(), name, fields);
    this.#lines++;
    out.write(`${line}\n`, (reason) => {
      if (reason) this.#dropped++;
    });
  }
}

/** What a passthrough's end is told as when nobody broke it off. */
const calmEnds = ["ended", "client left"];

/** Lines of requests and connections are the operator's choice; everything else is told. */
function isWanted(entry: Entry, accessLog: LogOptions["accessLog"]): boolean {
  if (entry.kind === "request.failed" || entry.kind === "passthrough.refused") return accessLog !== "None";
  if (entry.kind !== "passthrough.ended") return true;
  if (accessLog === "All" || accessLog === "LongRunning") return true;
  return accessLog === "Errors" && !calmEnds.includes(entry.reason);
}

function fieldsOf(entry: Entry): [string, Value][] {
  const { kind, ...rest } = entry;
  const complaint = complaints.get(kind);
  return Object.entries<Value>(rest).map(([name, value]) => [
    name === complaint ? "err" : name,
    clean(value),
  ]);
}

function jsonLine(ts: number, msg: string, fields: readonly (readonly [string, Value])[]): string {
  return ascii(JSON.stringify({ ts, msg, ...Object.fromEntries(fields) }));
}

function textLine(ts: number, msg: string, fields: readonly (readonly [string, Value])[]): string {
  const words = fields.map(([name, value]) => `${name}=${word(value)}`);
  return [dateOf(ts).toISOString(), msg, ...words].join(" ");
}

function word(value: Value): string {
  const text = typeof value === "object" ? value.join("; ") : String(value);
  return /^[\w./:@+-]+$/.test(text) ? text : ascii(JSON.stringify(text));
}

function clean(value: Value): Value {
  if (typeof value === "number") return value;
  return typeof value === "string"
    ? withoutSecrets(clipped(value))
    : value.map((text) => withoutSecrets(clipped(text)));
}

function clipped(text: string): string {
  return text.length > limits.logFieldChars ? `${text.slice(0, limits.logFieldChars)}...` : text;
}

/**
 * The last defence: nothing of the kind should get into the journal (A55). A websocket's subprotocol carries its token
 * behind `bearer.authorization.k8s.io.`; a JWT begins with `{"` in base64.
 */
const secret =
  /\b(bearer[\s.]+|basic\s+|(?:access_)?token=|authorization\.k8s\.io\.)[^\s&,;"']{8,}|\beyJ[\w.-]{8,}/gi;

/** The same text without what looks like a token. */
export function withoutSecrets(text: string): string {
  return text.replace(secret, "$1[redacted]");
}

/** Nothing that a terminal or another reader of lines might take for more than text (A53). */
function ascii(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
