/**
 * What the API answers, read with care: the proxy may be older or newer than this command, so what is not there is shown
 * as missing, and nothing of it is trusted to be fit for a terminal (A53).
 */

export type Row = { readonly [name: string]: unknown };

export type RowList = {
  readonly kind: string;
  readonly total: number;
  readonly matching: number;
  readonly items: readonly Row[];
};

/** Anything but an object is one without fields. */
export function rowOf(value: unknown): Row {
  return isRow(value) ? value : {};
}

function isRow(value: unknown): value is Row {
  return typeof value === "object" && value !== null && !Array.isArray(value);
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

/** What is at "renewedBy.client". */
export function at(row: Row, path: string): unknown {
  return path.split(".").reduce<unknown>((value, name) => rowOf(value)[name], row);
}

/** "" for what is not there. */
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

export function rowsAt(row: Row, path: string): readonly Row[] {
  const value = at(row, path);
  return Array.isArray(value) ? value.map(rowOf) : [];
}

/** One line of plain text: no character that a terminal obeys, or that turns the direction of writing. */
export function shown(text: string): string {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (char) => `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`);
}
