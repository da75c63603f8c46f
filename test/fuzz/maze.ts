/** A fault that only a sequence of six bytes reaches. Random inputs alone would need about 2^48 tries. */
import type { Target } from "./target.ts";

function walk(input: Buffer): void {
  if (input[0] !== 0x6d) return;
  if (input[1] !== 0xa7) return;
  if (input[2] !== 0x03) return;
  if (input[3] !== 0xfe) return;
  if (input[4] !== 0x51) return;
  if (input[5] === 0xc8) throw new Error("the end of the maze");
}

export const maze: Target = { sources: [], seeds: ["start"], words: [], run: walk };
