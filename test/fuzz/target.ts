/** What is fuzzed: something that takes bytes of any kind, and what must hold whatever they are. */
export type Target = {
  /** The sources that it is about: the share of their blocks that has run is told. */
  readonly sources: readonly string[];
  readonly seeds: readonly (Buffer | string)[];
  /** What means something in its language. */
  readonly words: readonly (Buffer | string)[];
  /** Throws when something does not hold, and when the code under test throws what it must not. */
  run(input: Buffer): void;
};

/** The input in pieces of growing and shrinking size, as `shape` says. */
export function piecesOf(input: Buffer, shape: number): Buffer[] {
  const pieces: Buffer[] = [];
  for (let at = 0, step = 0; at < input.length; step += 1) {
    const size = 1 + ((shape >> (step % 4)) % 7) * (1 + (step % 3));
    pieces.push(input.subarray(at, at + size));
    at += size;
  }
  return pieces;
}

export function same(what: string, one: unknown, other: unknown): void {
  const [a, b] = [JSON.stringify(one), JSON.stringify(other)];
  if (a !== b) throw new Error(`${what}: ${a.slice(0, 400)} is not ${b.slice(0, 400)}`);
}
