/**
 * Writes the journal to stdout, as JSON in the format of Kubernetes' components, or as text. Drops and counts lines
 * when stdout does not take them, so that stdout never blocks requests (F20). The logging package pino is not used,
 * because it would block requests.
 */
import { type Clock, dateOf } from "../../../base/clock.ts";
import { limits } from "../../../base/limits.ts";
import { eventKinds, type Level, levels } from "../../../events/event-kinds.ts";
import type { Entry, Journal } from "../../../events/journal.ts";
import { withoutQueryValues } from "../../../kube/query.ts";
import { type FieldValue, fieldsOf, levelOf } from "./entry-fields.ts";

/** The part of process.stdout that the log uses. It must not block, and must stay open after an error. */
export type Out = {
  write(text: string, done: (reason?: Error | null) => void): unknown;
  on(name: "error", listener: () => void): unknown;
  readonly writableLength: number;
};

export type LogOptions = {
  readonly out: Out;
  readonly clock: Clock;
  /** Lines of this level and of more severe ones are written; default: Info. */
  readonly level?: Level;
  readonly format: "JSON" | "Text";
  readonly accessLog: "None" | "Errors" | "LongRunning" | "All";
};

/** Writes entries to the log, from construction until `stop`. */
export class Log {
  #options: LogOptions;
  readonly #unsubscribe: readonly (() => void)[];
  #dropped = 0;
  #unreportedDrops = 0;
  #reportedAt = Number.NEGATIVE_INFINITY;

  constructor(journal: Journal, options: LogOptions) {
    this.#options = options;
    // Without this listener, an EPIPE or ENOSPC would end the process. The lost lines are counted in the callback of
    // each write.
    options.out.on("error", () => {});
    this.#unsubscribe = [
      journal.subscribe((entry) => (this.#isUnlimited(entry) ? this.#take(entry) : undefined)),
      journal.subscribePaced((entry) => (this.#isUnlimited(entry) ? undefined : this.#take(entry))),
    ];
  }

  /** Number of lines that were dropped, because stdout did not take them. */
  get dropped(): number {
    return this.#dropped;
  }

  configure(changed: Pick<LogOptions, "level" | "format" | "accessLog">): void {
    this.#options = { ...this.#options, ...changed };
  }

  stop(): void {
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
  }

  /** True for a line about a request if the operator has selected all of them. */
  #isUnlimited({ kind }: Entry): boolean {
    return this.#options.accessLog === "All" && (kind === "request.ended" || kind === "passthrough.ended");
  }

  #take(entry: Entry): void {
    const { accessLog, out, level: least = "Info" } = this.#options;
    const level = levelOf(entry);
    if (levels.indexOf(level) > levels.indexOf(least) || !isWanted(entry, accessLog)) return;
    if (out.writableLength >= limits.logBacklogBytes) {
      this.#dropped++;
      this.#unreportedDrops++;
      return;
    }
    this.#reportDrops();
    this.#write(level, entry.kind, namedFields(entry));
  }

  /**
   * Logs how many lines were dropped, at most once per `logDropsMs`. Without this limit, such a report could precede
   * each logged line.
   */
  #reportDrops(): void {
    const now = this.#options.clock.now();
    if (this.#unreportedDrops === 0 || now - this.#reportedAt < limits.logDropsMs) return;
    this.#write("Warning", "log.dropped", [["count", this.#unreportedDrops]]);
    this.#unreportedDrops = 0;
    this.#reportedAt = now;
  }

  #write(level: Level, name: string, fields: readonly (readonly [string, FieldValue])[]): void {
    const { out, clock, format } = this.#options;
    const lineOf = format === "JSON" ? jsonLine : textLine;
    const line = lineOf(clock.wall(), [level.toLowerCase(), name], fields);
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

function namedFields(entry: Entry): [string, FieldValue][] {
  const complaint = eventKinds[entry.kind].error;
  return fieldsOf(entry).map(([name, value]) => [name === complaint ? "err" : name, clean(value)]);
}

type Fields = readonly (readonly [string, FieldValue])[];

function jsonLine(ts: number, [level, msg]: readonly [string, string], fields: Fields): string {
  return ascii(JSON.stringify({ ts, level, msg, ...Object.fromEntries(fields) }));
}

function textLine(ts: number, [level, msg]: readonly [string, string], fields: Fields): string {
  const words = fields.map(([name, value]) => `${name}=${word(value)}`);
  return [dateOf(ts).toISOString(), level, msg, ...words].join(" ");
}

function word(value: FieldValue): string {
  const text = typeof value === "object" ? value.join("; ") : String(value);
  return /^[\w./:@+-]+$/.test(text) ? text : ascii(JSON.stringify(text));
}

function clean(value: FieldValue): FieldValue {
  if (typeof value === "number") return value;
  return typeof value === "string"
    ? withoutSecrets(clipped(value))
    : value.map((text) => withoutSecrets(clipped(text)));
}

function clipped(text: string): string {
  return text.length > limits.logFieldChars ? `${text.slice(0, limits.logFieldChars)}...` : text;
}

/**
 * Matches what looks like a token. This is only a last safeguard, because no token should reach the journal (A55). In a
 * WebSocket subprotocol, the token follows `bearer.authorization.k8s.io.`; a JWT begins with `{"` in base64.
 */
const secret =
  /\b(bearer[\s.]+|basic\s+|(?:access_)?token=|authorization\.k8s\.io\.)[^\s&,;"']{8,}|\beyJ[\w.-]{8,}/gi;

/** Returns the text with "[redacted]" in place of everything that looks like a token. */
export function withoutSecrets(text: string): string {
  return withoutQueryValues(text).replace(secret, "$1[redacted]");
}

/** Escapes all characters but printable ASCII, because a terminal or a log parser could interpret them (A53). */
function ascii(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
