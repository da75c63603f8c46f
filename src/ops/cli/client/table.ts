/** Formats rows as kubectl does: each column is as wide as its longest value, with two spaces between columns. */
import { type Row, shown } from "../commands/rows.ts";

export type Column = {
  readonly head: string;
  readonly of: (row: Row) => string;
  /** True if only `-o wide` shows the column; default: false. */
  readonly isWide?: boolean;
  /** True if the column is omitted when no row has a value; default: false. */
  readonly isRare?: boolean;
  /** True if a long value is never cut; default: false. */
  readonly isWhole?: boolean;
};

/** Maximum width of a cell in characters. A longer value is cut, except with `-o wide` and in a column with `isWhole`. */
const cellChars = 60;

export type TableOptions = { readonly isWide: boolean; readonly hasHeads: boolean };

/** Returns the table, which ends with a line break; "": there are neither rows nor headings. */
export function tableOf(columns: readonly Column[], rows: readonly Row[], options: TableOptions): string {
  const wanted = columns.filter(
    ({ isWide = false, isRare = false, of }) =>
      (options.isWide || !isWide) && (!isRare || rows.some((row) => of(row) !== "")),
  );
  const lines = rows.map((row) =>
    wanted.map(({ of, isWhole = false }) => cell(of(row), options.isWide || isWhole)),
  );
  if (options.hasHeads) lines.unshift(wanted.map(({ head }) => head));
  const widths = wanted.map((_, column) => Math.max(0, ...lines.map((line) => widthOf(line[column] ?? ""))));
  return lines.map((line) => `${padded(line, widths).trimEnd()}\n`).join("");
}

function padded(line: readonly string[], widths: readonly number[]): string {
  return line.map((text, column) => text + " ".repeat((widths[column] ?? 0) - widthOf(text))).join("  ");
}

function cell(text: string, isWhole: boolean): string {
  const safe = shown(text);
  if (safe === "") return "-";
  return isWhole || widthOf(safe) <= cellChars
    ? safe
    : `${Array.from(safe)
        .slice(0, cellChars - 1)
        .join("")}…`;
}

/** Returns the number of code points, which is nearly always the width of the text in a terminal. */
function widthOf(text: string): number {
  return Array.from(text).length;
}
