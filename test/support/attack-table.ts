/** The table of docs/attacks.md, as rows. */
import { existsSync, readFileSync } from "node:fs";

/** A test file below test/, and what of it is meant: undefined where its titles name the row. */
export type Named = { readonly file: string; readonly piece: string | undefined };

export type AttackRow = {
  readonly row: string;
  readonly attack: string;
  readonly over: readonly string[];
  readonly tests: readonly Named[];
  readonly limit: string;
  readonly metric: string;
  readonly twins: readonly Named[];
};

export function attackRows(page: string): AttackRow[] {
  return [...page.matchAll(/^\| (A\d+) \| (.+) \|$/gm)].map(([, row = "", rest = ""]) => {
    const [attack = "", over = "", tests = "", limit = "", metric = "", twins = ""] = rest.split(" | ");
    return {
      row,
      attack,
      over: over.split(", "),
      tests: namedIn(tests),
      limit,
      metric: metric.replaceAll("`", ""),
      twins: namedIn(twins),
    };
  });
}

function namedIn(cell: string): Named[] {
  return cell.split("; ").map((one) => {
    const [, file = "", piece] = /^`([^`]+)`(?:: (.+))?$/.exec(one) ?? [];
    return { file, piece };
  });
}

/** The text of a test file, "" when there is none. */
export function testText(file: string): string {
  const path = `test/${file}.test.ts`;
  return existsSync(path) ? readFileSync(path, "utf8") : "";
}

/** Titles, and the keys of tables that become titles. */
export function titlesIn(text: string): string[] {
  return [...text.matchAll(/(["`])((?:(?!\1)[^\n\\]|\\.)+)\1/g)].map(([, , title = ""]) => title);
}

/** The threat table of SECURITY.md: row, test, limit, metric. */
export function threatTable(rows: readonly AttackRow[]): string {
  const lines = rows.map(({ row, attack, tests, limit, metric }) => {
    const files = [...new Set(tests.map(({ file }) => `\`test/${file}.test.ts\``))].join(", ");
    return `| ${row} | ${attack} | ${files} | ${limit} | \`${metric}\` |`;
  });
  return ["| Row | Attack | Tests | Limit | Metric |", "|---|---|---|---|---|", ...lines, ""].join("\n");
}
