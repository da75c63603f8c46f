export type Problem = {
  /** Position as "file:line:column", which editors and terminals recognise; for an unreadable file only its name. */
  readonly at: string;
  /** The path of the field, such as "clusters[0].backends[0].url"; "": the problem concerns the whole file. */
  readonly field: string;
  readonly message: string;
};

/** A violation of a rule. `pointer`: JSON pointer of the field. A Problem has a line and column instead. */
export type Breach = { readonly pointer: string; readonly message: string };

/** Returns one line for a terminal or a log. The file's content cannot add lines or escape sequences to the line. */
export function lineOf({ at, field, message }: Problem): string {
  const line = field === "" ? `${at}: ${message}` : `${at}: ${field} ${message}`;
  return line.replaceAll(/[\u0000-\u001f\u007f-\u009f\u2028-\u202e]/g, "?");
}

export function inReadingOrder(one: Problem, other: Problem): number {
  const [line = 0, column = 0] = one.at.split(":").slice(-2).map(Number);
  const [otherLine = 0, otherColumn = 0] = other.at.split(":").slice(-2).map(Number);
  return line - otherLine || column - otherColumn;
}

export function isProblems(outcome: unknown): outcome is readonly Problem[] {
  return Array.isArray(outcome);
}

/** Returns any value as text for messages: short, on one line, and without passwords in URLs. Never throws. */
export function quote(value: unknown): string {
  const safe = jsonOf(value).replaceAll(/\/\/[^/"]*@/g, "//***@");
  return safe.length > 80 ? `${safe.slice(0, 77)}...` : safe;
}

function jsonOf(value: unknown): string {
  if (value === undefined) return "undefined";
  try {
    return JSON.stringify(value);
  } catch {
    return `a value of type ${typeof value}`; // It contains itself, or is a BigInt.
  }
}

/** Returns text such as ` (did you mean "weight"?)`; "" if no candidate is similar to `written`. */
export function didYouMean(written: string, candidates: readonly string[]): string {
  const nearest = nearestOf(written, candidates);
  return nearest === undefined ? "" : ` (did you mean ${quote(nearest)}?)`;
}

/** Returns the candidate that is the fewest edits away from `written`; undefined if none is similar. */
export function nearestOf(written: string, candidates: readonly string[]): string | undefined {
  // Skips long texts, because no known name is that long and the time of a comparison grows with the product of both
  // lengths.
  if (written.length > 40) return undefined;
  const near = candidates
    .map((candidate) => ({ candidate, distance: distanceOf(written.toLowerCase(), candidate.toLowerCase()) }))
    .filter(({ candidate, distance }) => distance <= Math.max(1, Math.floor(candidate.length / 3)))
    .toSorted((one, other) => one.distance - other.distance);
  return near[0]?.candidate;
}

/** Returns the number of edits between two words. A swap such as from "wieght" to "weight" is one edit. */
function distanceOf(one: string, other: string): number {
  let before: readonly number[] = [];
  let row: readonly number[] = Array.from({ length: other.length + 1 }, (_, column) => column);
  for (let line = 1; line <= one.length; line++) {
    const next = [line];
    for (let column = 1; column <= other.length; column++) {
      const isSame = one[line - 1] === other[column - 1];
      const isSwapped = one[line - 1] === other[column - 2] && one[line - 2] === other[column - 1];
      next[column] = Math.min(
        costAt(row, column) + 1,
        costAt(next, column - 1) + 1,
        costAt(row, column - 1) + (isSame ? 0 : 1),
        isSwapped ? costAt(before, column - 2) + 1 : Infinity,
      );
    }
    before = row;
    row = next;
  }
  return costAt(row, other.length);
}

function costAt(row: readonly number[], column: number): number {
  return row[column] ?? Infinity;
}

export function repeatedNames(pointer: string, named: readonly { readonly name: string }[]): Breach[] {
  return named.flatMap(({ name }, index) => {
    const first = named.findIndex((other) => other.name === name);
    const message = `is ${quote(name)} again: entry ${first} has that name`;
    return first < index ? [{ pointer: `${pointer}/${index}/name`, message }] : [];
  });
}
