/**
 * Generates the inputs on which a regular expression takes longest, from its own parts. A backtracking engine is slow
 * if a repetition can begin or end at many places and what follows it does not match. So for each repetition and each
 * character that it accepts, an input repeats this character. Before it stands a text that the preceding part matches,
 * after it a text that cannot match. The beginning of the expression is repeated in the same way, because an unanchored
 * search tries it at every position.
 */

type Node = { readonly text: string; readonly pumps: readonly string[]; readonly isLong: boolean };

/** Characters that distinguish character classes. Each class that the project uses accepts at least one of them. */
const alphabet = Array.from(" \t\r\n\u0000\u00ff!\"#%&'()*+,-./:;<=>?@[\\]^_`{|}~09afzAFZTe\u2028");

/** Yields texts of about `size` characters. */
export function* worstCases(source: string, flags: string, size: number): Generator<string> {
  const ends = ["\n", "\u0000", "a"];
  for (const [before, pump] of pumped(source, flags)) {
    const middle = pump.repeat(Math.ceil(size / pump.length)).slice(0, size);
    for (const end of ends) {
      yield before + middle + end;
      if (before !== "") yield middle + before + end;
    }
  }
}

/** Returns pairs: the text before a repetition, and the text to repeat. */
function pumped(source: string, flags: string): [string, string][] {
  const found = new Map<string, [string, string]>();
  const add = (before: string, pump: string): void => {
    if (pump !== "") found.set(`${before}\u0001${pump}`, [before, pump]);
  };
  for (const branch of branchesOf(source)) {
    const nodes = nodesOf(branch, flags);
    let before = "";
    for (const { text, pumps, isLong } of nodes) {
      for (const pump of isLong ? toldApart(pumps, nodes) : []) {
        add(before, pump);
        add("", before + pump);
      }
      if (before === "") add("", text);
      before += text;
    }
    add("", before);
  }
  return [...found.values()];
}

/** Of the characters that exactly the same atoms accept, keeps one. */
function toldApart(pumps: readonly string[], nodes: readonly Node[]): string[] {
  const kinds = new Map<string, string>();
  for (const pump of pumps)
    kinds.set(nodes.map((node) => (node.pumps.includes(pump) ? 1 : 0)).join("") + /\w/.test(pump), pump);
  return [...kinds.values()];
}

/** Returns up to 64 paths through the expression: its alternatives, with all groups written out. */
function branchesOf(source: string): string[] {
  let ways = [source];
  for (let round = 0; round < 12; round += 1) {
    const next = ways.flatMap((way) => opened(way));
    if (next.length > 64 || next.every((way, at) => way === ways[at])) return next.slice(0, 64);
    ways = next;
  }
  return ways;
}

/**
 * Splits the expression at its top-level alternatives. If it has none, writes out its first group, once for each
 * alternative in it and each number of repetitions. If it has no group either, returns only the expression itself.
 */
function opened(way: string): string[] {
  const tops = alternatives(way);
  if (tops.length > 1) return tops;
  for (let at = 0; at < way.length; at += 1) {
    if (way[at] === "\\") at += 1;
    else if (way[at] === "[") at = classEnd(way, at) - 1;
    else if (way[at] === "(") {
      const end = groupEnd(way, at);
      const [head, tail] = [way.slice(0, at), way.slice(end)];
      const inner = way.slice(at + 1, end - 1).replace(/^\?(?:[:=!]|<[=!]|<\w+>)/, "");
      const count = /^(?:[*+?]|\{\d+(?:,\d*)?\})\??/.exec(tail)?.[0] ?? "";
      const rest = tail.slice(count.length);
      const inners = alternatives(inner);
      const times = count.startsWith("?") || count === "" ? [1] : [1, 3];
      const written = inners.flatMap((one) => times.map((time) => head + one.repeat(time) + rest));
      return count === "" || count.startsWith("+") ? written : [...written, head + rest];
    }
  }
  return [way];
}

function alternatives(text: string): string[] {
  const all: string[] = [];
  let from = 0;
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === "[") at = classEnd(text, at) - 1;
    else if (text[at] === "(") at = groupEnd(text, at) - 1;
    else if (text[at] === "|") {
      all.push(text.slice(from, at));
      from = at + 1;
    }
  }
  return [...all, text.slice(from)];
}

function classEnd(text: string, from: number): number {
  for (let at = from + 1; at < text.length; at += 1) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === "]") return at + 1;
  }
  throw new Error(`A class without an end in ${text}`);
}

function groupEnd(text: string, from: number): number {
  let depth = 0;
  for (let at = from; at < text.length; at += 1) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === "[") at = classEnd(text, at) - 1;
    else if (text[at] === "(") depth += 1;
    else if (text[at] === ")" && --depth === 0) return at + 1;
  }
  throw new Error(`A group without an end in ${text}`);
}

/** Returns the atoms of an expression without groups, each with its repetition count. */
function nodesOf(way: string, flags: string): Node[] {
  const nodes: Node[] = [];
  const atom =
    /(\[(?:\\.|[^\]\\])*\]|\\(?:[pP]\{[^}]*\}|x[\da-f]{2}|u[\da-f]{4}|.)|[^])([*+?]|\{\d+(?:,\d*)?\})?\??/giy;
  for (let match = atom.exec(way); match !== null; match = atom.exec(way)) {
    const [, piece = "", count = ""] = match;
    // A group that was not written out above, because there were too many paths.
    if (/^(?:[\^$()|]|\\[bB])$/.test(piece)) continue;
    const one = new RegExp(`^(?:${piece})$`, flags.replace(/[gmy]/g, ""));
    const taken = alphabet.filter((character) => one.test(character));
    const first = piece.length === 1 && piece !== "." ? piece : (taken.at(-1) ?? "a");
    const least = Number(/^\{(\d+)/.exec(count)?.[1] ?? 1);
    const most = Number(/,(\d+)\}$/.exec(count)?.[1] ?? (/^[*+]|,\}$/.test(count) ? Infinity : least));
    nodes.push({ text: first.repeat(least), pumps: taken.length > 0 ? taken : [first], isLong: most > 256 });
  }
  return nodes;
}
