/** Reads the list of attacks in docs/attacks.md into rows. */
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

/** The metric and the twin of a row that names none. */
const usual = { metric: "watchkeeper_downstream_connections_refused_total", twin: "`attacks/whole/twins`" };

export function attackRows(page: string): AttackRow[] {
  const items = page.replaceAll(/\n {2}/g, " ").matchAll(/^- \*\*(A\d+)\*\* \(([^)]+)\) (.+)\.$/gm);
  return [...items].map(([, row = "", over = "", rest = ""]) => {
    const [attack = "", ...parts] = rest.split(/\. (?=\*\w+:\*)/);
    const part = (name: string): string | undefined =>
      parts.find((one) => one.startsWith(`*${name}:* `))?.slice(name.length + 4);
    return {
      row,
      attack,
      over: over.split(", "),
      tests: namedIn(part("Tests") ?? ""),
      limit: part("Limit") ?? "",
      metric: (part("Counted") ?? usual.metric).replaceAll("`", ""),
      twins: namedIn(part("Twin") ?? usual.twin),
    };
  });
}

function namedIn(list: string): Named[] {
  return list.split("; ").map((one) => {
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
