/**
 * The code blocks on the pages that users read, each with the kind that its fence names, and the commands in the shell
 * blocks.
 */
import { globSync, readFileSync } from "node:fs";

export type Block = {
  readonly page: string;
  /** The line number of the block's first line after the fence. */
  readonly line: number;
  /** The info string after the opening fence, or "" if it has none. */
  readonly kind: string;
  readonly text: string;
};

/**
 * One command of a block, as the page shows it, without its comment. Lines that end with a backslash are joined to the
 * next.
 */
export type PageCommand = { readonly page: string; readonly line: number; readonly text: string };

const pages = globSync("{README.md,CONTRIBUTING.md,{docs,deploy,config}/**/*.md}").toSorted();

export function blocksOf(page: string): readonly Block[] {
  const text = readFileSync(page, "utf8");
  return [...text.matchAll(/^( *)```([^\n]*)\n([^]*?)^ *```$/gm)].map((match) => ({
    page,
    line: text.slice(0, match.index).split("\n").length + 1,
    kind: (match[2] ?? "").trim(),
    text: match[3] ?? "",
  }));
}

export const blocks: readonly Block[] = pages.flatMap((page) => blocksOf(page));

/** True if the block contains Kubernetes objects. A block may contain several. */
export function isManifest({ kind, text }: Block): boolean {
  return kind === "yaml" && /^apiVersion: (?!watchkeeper\.dev\/)/m.test(text);
}

/** Returns lines that Markdown takes for code only because of their indentation. They have no kind. */
export function indented(): readonly string[] {
  return pages.flatMap((page) => {
    const prose = readFileSync(page, "utf8").replaceAll(/^ *```[^]*?^ *```$/gm, "```");
    return [...prose.matchAll(/\n\n {4}(\S.*)/g)].map(([, line = ""]) => `${page}: ${line}`);
  });
}

/** The commands of all shell blocks, in the order of the pages. */
export const pageCommands: readonly PageCommand[] = blocks
  .filter(({ kind }) => kind === "sh")
  .flatMap((block) => commandsOf(block));

export function commandsOf({ page, line, text }: Block): readonly PageCommand[] {
  const found: PageCommand[] = [];
  let begun = "";
  for (const [index, raw] of text.split("\n").entries()) {
    if (/^\s*(#|$)/.test(raw)) continue;
    begun += raw;
    if (begun.endsWith("\\")) {
      begun = `${begun.slice(0, -1).trimEnd()} `;
      continue;
    }
    for (const one of parted(begun)) found.push({ page, line: line + index, text: one });
    begun = "";
  }
  return found;
}

/**
 * Removes the comment of a line, and splits the line into commands at each "&&". Does not split or cut inside quotes.
 */
function parted(line: string): readonly string[] {
  let quote = "";
  let from = 0;
  const parts: string[] = [];
  for (let at = 0; at < line.length; at += 1) {
    const char = line[at] ?? "";
    if (quote !== "") {
      if (char === quote) quote = "";
    } else if (char === "'" || char === '"') quote = char;
    else if (line.startsWith(" #", at)) return [...parts, line.slice(from, at).trim()];
    else if (line.startsWith(" && ", at)) {
      parts.push(line.slice(from, at).trim());
      from = at + 4;
    }
  }
  return [...parts, line.slice(from).trim()];
}
