/**
 * Texts on which a regular expression takes the longest, made of its own parts. A backtracking engine is slow where a
 * repetition can begin or end at many places and what follows it fails: so each repetition of the expression is pumped
 * with each character that it takes, behind what has to stand before it, and in front of what cannot follow; and so is
 * each beginning of the expression, for one that is looked for at every place.
 */

type Node = { readonly text: string; readonly pumps: readonly string[]; readonly isLong: boolean };

/** Characters that tell classes apart; any class of ours has one of them. */
const alphabet = Array.from(" \t\r\n\u0000\u00ff!\"#%&'()*+,-./:;<=>?@[\\]^_`{|}~09afzAFZTe\u2028");

/** Of `bytes` characters each. */
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

/** What stands before, and what is repeated. */
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

/** Of characters that the same atoms take, one is enough. */
function toldApart(pumps: readonly string[], nodes: readonly Node[]): string[] {
  const kinds = new Map<string, string>();
  for (const pump of pumps)
    kinds.set(nodes.map((node) => (node.pumps.includes(pump) ? 1 : 0)).join("") + /\w/.test(pump), pump);
  return [...kinds.values()];
}

/** Alternatives at the top, and groups opened: each way through the expression, sixty-four at most. */
function branchesOf(source: string): string[] {
  let ways = [source];
  for (let round = 0; round < 12; round += 1) {
    const next = ways.flatMap((way) => opened(way));
    if (next.length > 64 || next.every((way, at) => way === ways[at])) return next.slice(0, 64);
    ways = next;
  }
  return ways;
}

/** Its first group written out, as often as it may stand there; itself when it has none. */
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

/** One atom with its count after the other, of a way without groups. */
function nodesOf(way: string, flags: string): Node[] {
  const nodes: Node[] = [];
  const atom =
    /(\[(?:\\.|[^\]\\])*\]|\\(?:[pP]\{[^}]*\}|x[\da-f]{2}|u[\da-f]{4}|.)|[^])([*+?]|\{\d+(?:,\d*)?\})?\??/giy;
  for (let match = atom.exec(way); match !== null; match = atom.exec(way)) {
    const [, piece = "", count = ""] = match;
    // What was not written out above: too many ways.
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
