/** Mutates inputs: changes bytes, moves pieces, and inserts tokens of the target's language. */
import type { Random } from "../support/random.ts";

const mostBytes = 4096;
const edges: readonly [number, ...number[]] = [0, 1, 9, 10, 13, 31, 32, 45, 58, 127, 128, 254, 255];

type Change = (input: Buffer, random: Random, others: Others) => Buffer;
export type Others = { readonly words: readonly Buffer[]; readonly other: Buffer };

const placeIn = (input: Buffer, random: Random): number => random.below(input.length + 1);

function spliced(input: Buffer, from: number, to: number, piece: Buffer): Buffer {
  return Buffer.concat([input.subarray(0, from), piece, input.subarray(to)]);
}

/** Replaces one byte. */
function turned(input: Buffer, random: Random, value: (before: number) => number): Buffer {
  if (input.length === 0) return Buffer.from([value(0) & 0xff]);
  const output = Buffer.from(input);
  const at = random.below(output.length);
  output[at] = value(output[at] ?? 0) & 0xff;
  return output;
}

const changes: readonly [Change, ...Change[]] = [
  (input, random) => turned(input, random, (octet) => octet ^ (1 << random.below(8))),
  (input, random) => turned(input, random, () => random.below(256)),
  (input, random) => turned(input, random, () => random.pick(edges)),
  (input, random) => turned(input, random, (octet) => octet + random.below(9) - 4),
  (input, random) => {
    const at = placeIn(input, random);
    return spliced(input, at, at + 1 + random.below(8), Buffer.alloc(0));
  },
  (input, random) => {
    const at = placeIn(input, random);
    return spliced(
      input,
      at,
      at,
      Buffer.from(Array.from({ length: 1 + random.below(4) }, () => random.below(256))),
    );
  },
  (input, random) => {
    const from = placeIn(input, random);
    const piece = input.subarray(from, from + 1 + random.below(64));
    const at = placeIn(input, random);
    const times = random.chance(0.1) ? 1 + random.below(16) : 1;
    return spliced(input, at, at, Buffer.concat(Array.from({ length: times }, () => piece)));
  },
  (input, random) => input.subarray(0, placeIn(input, random)),
  (input, random, { words }) => {
    const at = placeIn(input, random);
    const word = words[random.below(words.length)] ?? Buffer.alloc(0);
    return spliced(input, at, random.chance(0.5) ? at : at + word.length, word);
  },
  (input, random, { other }) => {
    const at = placeIn(input, random);
    const from = placeIn(other, random);
    return spliced(input, at, at + random.below(64), other.subarray(from, from + 1 + random.below(128)));
  },
];

/** Returns a mutation of `input` with at least one change. Each further change has a probability of 50 %. */
export function mutated(input: Buffer, random: Random, others: Others): Buffer {
  let output = input;
  do output = random.pick(changes)(output, random, others);
  while (random.chance(0.5));
  return Buffer.from(output.subarray(0, mostBytes));
}
