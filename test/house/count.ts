/** Counts lines, tuned constants, callback types and words. Each definition is also the text that the report prints. */
import { execFileSync } from "node:child_process";
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Room, roomFor } from "./rooms.ts";

export const definitions = {
  lines: "lines of all TypeScript files of a room; page: of all .js, .css and .html files below src",
  constants:
    "numbers other than 0, 1 and 100 that a module-level constant, or a property or element of one, is set to; not " +
    "the numbers of a format (src/h2 except its limits, src/x509, codecs, protobuf, the PROXY protocol, the " +
    "ClientHello) and not the bounds of histograms",
  callbackTypes:
    "type aliases and interfaces of src and demo whose name ends in Parts, Owner, Host or Services, or whose members " +
    "are functions only",
  words: "words of all tracked Markdown files, separated by white space",
};

export type Counts = {
  readonly lines: Readonly<Record<Room, number>>;
  readonly constants: readonly string[];
  readonly callbackTypes: readonly string[];
  readonly testLines: number;
};

/** Returns the paths of the source files below `root`, relative to it. */
export function sourcesBelow(root: string): string[] {
  return globSync(["src/**/*.{ts,js,css,html}", "demo/**/*.ts"], { cwd: root }).toSorted();
}

/** Counts the checkout at `root`. */
export function count(root: string): Counts {
  const lines = { core: 0, ops: 0, fleet: 0, demo: 0, main: 0, page: 0 };
  const constants: string[] = [];
  const callbackTypes: string[] = [];
  for (const path of sourcesBelow(root)) {
    const room = roomFor(path);
    if (room === undefined) continue;
    const text = readFileSync(join(root, path), "utf8");
    lines[room] += linesOf(text);
    if (room === "page") continue;
    callbackTypes.push(...callbackTypesOf(text).map((name) => `${path} ${name}`));
    if (!isFormat(path)) constants.push(...constantsOf(text).map((name) => `${path} ${name}`));
  }
  const tests = globSync("test/**/*.{ts,js}", { cwd: root });
  const testLines = tests.reduce((sum, path) => sum + linesOf(readFileSync(join(root, path), "utf8")), 0);
  return { lines, constants, callbackTypes, testLines };
}

/** Returns the number of tracked Markdown files below `root`, and of their words. */
export function countWords(root: string): { readonly pages: number; readonly words: number } {
  const listed = execFileSync("git", ["ls-files", "*.md"], { cwd: root, encoding: "utf8" })
    .trim()
    .split("\n");
  const pages = listed.map((page) => join(root, page)).filter((page) => existsSync(page));
  const words = pages.flatMap((page) =>
    readFileSync(page, "utf8")
      .split(/\s+/)
      .filter((word) => word !== ""),
  );
  return { pages: pages.length, words: words.length };
}

function linesOf(text: string): number {
  return text.split("\n").length - 1;
}

function isFormat(path: string): boolean {
  if (path.startsWith("src/h2/")) return !path.endsWith("/limits.ts");
  return /x509\/|\/codec\/|\/(protobuf|proxy-protocol|client-hello|histogram)\.ts$/.test(path);
}

/**
 * Returns `name = number` for each tuned constant of a file: its module-level constants, from the line of `const` to
 * the line that ends the statement.
 */
export function constantsOf(text: string): string[] {
  const found: string[] = [];
  for (const [statement, name = ""] of text.matchAll(
    /^(?:export )?const ([a-zA-Z]+)\b[^;]*?;$/gm,
  ) as Iterable<RegExpMatchArray>) {
    const value = statement.slice(statement.indexOf("=") + 1);
    // A function, a regular expression or a template is no table of numbers.
    if (value.includes("=>") || value.includes("function") || /^\s*[/`]/.test(value)) continue;
    const code = value
      .replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, "")
      .replaceAll(/"(?:[^"\\]|\\.)*"|`[^`]*`/g, '""');
    for (const [number] of code.matchAll(/(?<![\w.])\d[\d_]*(?:\.\d+)?(?:e\d+)?(?![\w.])/g)) {
      if (!["0", "1", "100"].includes(number)) found.push(`${name} = ${number}`);
    }
  }
  return found;
}

/** Returns the names of the callback types of a file. */
export function callbackTypesOf(text: string): string[] {
  const found: string[] = [];
  for (const [, name = "", body = ""] of text.matchAll(
    /^(?:export )?(?:type|interface) ([A-Z]\w*)(?:<[^=]*?>)?(?: =)?(?: [^\n{]*)? \{\n([\s\S]*?)^\}/gm,
  ) as Iterable<RegExpMatchArray>) {
    const members = body.split("\n").filter((line) => /^ {2}[a-zA-Z[]/.test(line));
    const functions = members.filter((line) => /^ {2}(?:readonly )?\w+\??(?:\(|: \()/.test(line));
    if (
      /(Parts|Owner|Host|Services)$/.test(name) ||
      (members.length > 0 && functions.length === members.length)
    )
      found.push(name);
  }
  return found;
}
