/** A target of the fuzzer: code that takes arbitrary bytes, and the invariants that must hold for any input. */
export type Target = {
  /** The sources under test. The report says which share of their blocks has run. */
  readonly sources: readonly string[];
  readonly seeds: readonly (Buffer | string)[];
  /** Tokens of the target's language. */
  readonly words: readonly (Buffer | string)[];
  /** Throws if an invariant is violated, or if the code under test throws an error that it must not. */
  run(input: Buffer): void;
};

/** Cuts the input into pieces whose sizes depend on `shape`. */
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
