/**
 * Finds every regular expression of a source text: the literals, and the calls of RegExp. It is a simple scanner, not a
 * TypeScript parser.
 */

/**
 * `text` is the expression as the source has it, with slashes and flags. For a call of RegExp it is the rest of the
 * line.
 */
export type Found = { readonly file: string; readonly line: number; readonly text: string };

/**
 * Keywords after which a slash begins a regular expression. After any other name, a number or `)` a slash is the
 * division operator.
 */
const before = new Set(["return", "typeof", "case", "in", "of", "do", "else", "void", "delete", "await"]);

export function expressionsIn(file: string, source: string): Found[] {
  const found: Found[] = [];
  /** The previous token: a word, or one character. */
  let last = "";
  /** For each open `${`: the number of braces that are open inside it. */
  const templates: number[] = [];
  let at = 0;
  const lineOf = (index: number): number => source.slice(0, index).split("\n").length;
  const template = (from: number): number => {
    for (let index = from; index < source.length; index += 1) {
      if (source[index] === "\\") index += 1;
      else if (source[index] === "`") {
        last = '"';
        return index + 1;
      } else if (source.startsWith("${", index)) {
        templates.push(0);
        last = "(";
        return index + 2;
      }
    }
    throw new Error(`${file}: a template without an end`);
  };
  while (at < source.length) {
    const character = source[at] ?? "";
    const two = source.slice(at, at + 2);
    const word = /[\w$]+/y;
    word.lastIndex = at;
    if (/\s/.test(character)) at += 1;
    else if (two === "//") at = endOf(source, "\n", at);
    else if (two === "/*") at = endOf(source, "*/", at);
    else if (character === "}" && templates.at(-1) === 0) {
      templates.pop();
      at = template(at + 1);
    } else if (character === '"' || character === "'") {
      at = literalEnd(source, at, character);
      last = '"';
    } else if (character === "`") {
      at = template(at + 1);
    } else if (character === "/" && (before.has(last) || !/[\w$)\]"]/.test(last))) {
      const end = literalEnd(source, at, "/");
      const flags = /[a-z]*/y;
      flags.lastIndex = end;
      const text = source.slice(at, end) + (flags.exec(source)?.[0] ?? "");
      found.push({ file, line: lineOf(at), text });
      at += text.length;
      last = '"';
    } else if (word.test(source)) {
      last = source.slice(at, word.lastIndex);
      if (last === "RegExp" && source[word.lastIndex] === "(")
        found.push({ file, line: lineOf(at), text: source.slice(at, endOf(source, "\n", at)).trim() });
      at = word.lastIndex;
    } else {
      const depth = templates.at(-1);
      if (depth !== undefined && character === "{") templates[templates.length - 1] = depth + 1;
      if (depth !== undefined && character === "}") templates[templates.length - 1] = depth - 1;
      last = character;
      at += 1;
    }
  }
  return found;
}

function endOf(source: string, end: string, from: number): number {
  const at = source.indexOf(end, from + 1);
  return at < 0 ? source.length : at + end.length;
}

/**
 * Returns the index after the end of a string or a regular expression. A slash inside brackets does not end a regular
 * expression.
 */
function literalEnd(source: string, from: number, end: string): number {
  let inBrackets = false;
  for (let at = from + 1; at < source.length; at += 1) {
    const character = source[at];
    if (character === "\\") at += 1;
    else if (end === "/" && character === "[") inBrackets = true;
    else if (end === "/" && character === "]") inBrackets = false;
    else if (character === end && !inBrackets) return at + 1;
  }
  throw new Error(`A literal without an end at ${from}`);
}
