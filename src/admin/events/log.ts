/**
 * Writes the journal to stdout, as JSON in the format of Kubernetes' components, or as text. Drops and counts lines
 * that cannot be written, so that stdout never blocks the data path (F20), as it would with pino.
 */
import { type Clock, dateOf } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";
import type { Entry, Journal } from "../../events/journal.ts";

/** The part of process.stdout that the log uses. It must not block, and must stay open after an error. */
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

/** The field that contains the error message, by kind of entry. The log names this field `err`, as klog does. */
const complaints = new Map<Entry["kind"], string>([
  ["listener.lost", "reason"],
  ["downstream_connection.refused", "reason"],
  ["request.refused", "reason"],
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

/** Writes entries to the log, from construction until `stop`. */
export class Log {
  #options: LogOptions;
  readonly #unsubscribe: () => void;
  #second = 0;
  #lines = 0;
  #dropped = 0;
  #unreportedDrops = 0;

  constructor(journal: Journal, options: LogOptions) {
    this.#options = options;
    // Without this listener an EPIPE or ENOSPC would end the process. The callback of each write counts the error.
    options.out.on("error", () => {});
    this.#unsubscribe = journal.subscribe((entry) => this.#take(entry));
  }

  /** Number of lines that could not be written or exceeded the rate limit. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Applies to the entries that follow. */
  configure(changed: Pick<LogOptions, "format" | "accessLog">): void {
    this.#options = { ...this.#options, ...changed };
  }

  stop(): void {
    this.#unsubscribe();
  }

  #take(entry: Entry): void {
    if (!isWanted(entry, this.#options.accessLog)) return;
    if (!this.#hasRoom()) {
      this.#dropped++;
      this.#unreportedDrops++;
      return;
    }
    if (this.#unreportedDrops > 0) this.#write("log.dropped", [["count", this.#unreportedDrops]]);
    this.#unreportedDrops = 0;
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

const endsWithoutError = ["ended", "client_left"];

/** True if the entry is logged. `accessLog` selects among the entries about requests; all other entries are logged. */
function isWanted(entry: Entry, accessLog: LogOptions["accessLog"]): boolean {
  if (entry.kind === "request.failed" || entry.kind === "passthrough.refused") return accessLog !== "None";
  if (entry.kind !== "passthrough.ended") return true;
  if (accessLog === "All" || accessLog === "LongRunning") return true;
  return accessLog === "Errors" && !endsWithoutError.includes(entry.reason);
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
 * Matches what looks like a token, as a last safeguard: no token should reach the journal (A55). In a WebSocket
 * subprotocol, the token follows `bearer.authorization.k8s.io.`; a JWT begins with `{"` in base64.
 */
const secret =
  /\b(bearer[\s.]+|basic\s+|(?:access_)?token=|authorization\.k8s\.io\.)[^\s&,;"']{8,}|\beyJ[\w.-]{8,}/gi;

/** Returns the text without anything that looks like a token. */
export function withoutSecrets(text: string): string {
  return text.replace(secret, "$1[redacted]");
}

/** Escapes all characters but printable ASCII, because a terminal or a log parser could interpret them (A53). */
function ascii(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
