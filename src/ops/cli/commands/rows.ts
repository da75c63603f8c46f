/**
 * Reads JSON objects that may lack any field, because the proxy may be older or newer than this command. `shown`
 * escapes control characters in text for a terminal (A53).
 */
import { invisible, isRecord, type JsonRecord } from "../../../base/json.ts";

export type Row = JsonRecord;

export type RowList = {
  readonly kind: string;
  readonly total: number;
  readonly matching: number;
  readonly items: readonly Row[];
};

export function rowOf(value: unknown): Row {
  return isRecord(value) ? value : {};
}

export function listOf(value: unknown): RowList {
  const row = rowOf(value);
  const items = rowsAt(row, "items");
  return {
    kind: textAt(row, "kind"),
    total: numberAt(row, "total") ?? items.length,
    matching: numberAt(row, "matching") ?? items.length,
    items,
  };
}

/** Returns the value at a path such as "renewedBy.client". */
export function at(value: unknown, path: string): unknown {
  return path.split(".").reduce((inner, name) => rowOf(inner)[name], value);
}

/** Returns the text at a path; "" for an absent field. */
export function textAt(row: Row, path: string): string {
  const value = at(row, path);
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return value.map(String).join(",");
  return value === undefined || value === null ? "" : JSON.stringify(value);
}

export function numberAt(row: Row, path: string): number | undefined {
  const value = at(row, path);
  return typeof value === "number" ? value : undefined;
}

export function wordsAt(row: Row, path: string): readonly string[] {
  const value = at(row, path);
  return Array.isArray(value) ? value.map(String) : [];
}

export function rowsAt(row: unknown, path: string): readonly Row[] {
  const value = at(row, path);
  return Array.isArray(value) ? value.map(rowOf) : [];
}

/** Returns the text on one line, with control characters and bidirectional overrides escaped. */
export function shown(text: string): string {
  return text.replace(invisible, (char) => `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`);
}
