/** Reads the table of docs/attacks.md into rows. */
import { existsSync, readFileSync } from "node:fs";

/**
 * A test file below test/. `piece` is the text in it that covers the row; undefined if its test titles name the row.
 */
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

/** Returns the source of a test file; "" if the file does not exist. */
export function testText(file: string): string {
  const path = `test/${file}.test.ts`;
  return existsSync(path) ? readFileSync(path, "utf8") : "";
}

/**
 * Returns all string literals of a source text, which include the titles of its tests and the table keys that become
 * titles.
 */
export function titlesIn(text: string): string[] {
  return [...text.matchAll(/(["`])((?:(?!\1)[^\n\\]|\\.)+)\1/g)].map(([, , title = ""]) => title);
}

/** Returns the threat table of SECURITY.md as Markdown, with the columns row, attack, tests, limit and metric. */
export function threatTable(rows: readonly AttackRow[]): string {
  const lines = rows.map(({ row, attack, tests, limit, metric }) => {
    const files = [...new Set(tests.map(({ file }) => `\`test/${file}.test.ts\``))].join(", ");
    return `| ${row} | ${attack} | ${files} | ${limit} | \`${metric}\` |`;
  });
  return ["| Row | Attack | Tests | Limit | Metric |", "|---|---|---|---|---|", ...lines, ""].join("\n");
}
