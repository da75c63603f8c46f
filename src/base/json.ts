/** Functions that read parsed JSON of unknown shape. A field that is missing or has another type reads as empty. */
export type JsonRecord = Readonly<Record<string, unknown>>;

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The characters that a terminal may obey or hide. */
export const invisible = /[\p{C}\p{Zl}\p{Zp}]/gu;

/**
 * Escapes the invisible characters within the quoted strings of JSON or YAML, but not the line feeds that format the
 * text. JSON writes a character above U+FFFF as two escapes, which YAML does not permit.
 */
export function escapeInvisible(text: string, format: "json" | "yaml"): string {
  return text.replace(invisible, (char) => {
    if (char === "\n") return char;
    return char.length > 1 && format === "yaml"
      ? `\\U${hex(char.codePointAt(0), 8)}`
      : char.replace(/[^]/g, (unit) => `\\u${hex(unit.charCodeAt(0), 4)}`);
  });
}

function hex(code = 0, digits = 4): string {
  return code.toString(16).padStart(digits, "0");
}

export function isRecord(value: unknown): value is JsonRecord {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function recordAt(parent: JsonRecord | undefined, key: string): JsonRecord | undefined {
  const value = parent?.[key];
  return isRecord(value) ? value : undefined;
}

export function textAt(parent: JsonRecord | undefined, key: string): string {
  const value = parent?.[key];
  return typeof value === "string" ? value : "";
}

const lineFeed = 0x0a;

/** Cuts a stream of bytes into lines, each of which is a JSON object. */
export class JsonLines {
  readonly #mostBytes: number;
  #pieces: Buffer[] = [];
  #pendingBytes = 0;

  /** `mostBytes`: maximum length of a line. Bytes of a longer line are not kept. */
  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes;
  }

  /** Number of bytes of the last line, whose end has not arrived yet. */
  get pendingBytes(): number {
    return this.#pendingBytes;
  }

  /**
   * Adds bytes, and calls `each` for every line that they complete, with undefined for a line that is no JSON object.
   * Stops when `each` returns false. Returns false if a line is too long; no line may be read after that.
   */
  take(bytes: Buffer, each: (message: JsonRecord | undefined) => boolean): boolean {
    let start = 0;
    for (let end = bytes.indexOf(lineFeed); end >= 0; end = bytes.indexOf(lineFeed, start)) {
      if (!this.#add(bytes.subarray(start, end))) return false;
      start = end + 1;
      if (!each(this.#message())) return true;
    }
    return this.#add(bytes.subarray(start));
  }

  #add(bytes: Buffer): boolean {
    this.#pendingBytes += bytes.length;
    if (this.#pendingBytes > this.#mostBytes) {
      this.#pieces = [];
      return false;
    }
    if (bytes.length > 0) this.#pieces.push(bytes);
    return true;
  }

  #message(): JsonRecord | undefined {
    const message = parseJson(Buffer.concat(this.#pieces).toString());
    this.#pieces = [];
    this.#pendingBytes = 0;
    return isRecord(message) ? message : undefined;
  }
}
