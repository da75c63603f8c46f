/**
 * A small coverage-guided fuzzer. It mutates inputs at random, and keeps each one that runs a new block for further
 * mutation. docs/attacks.md says why it is used instead of jazzer.js.
 */
import { type Random, seeded } from "../support/random.ts";
import { mostInputs } from "./corpus.ts";
import { Coverage } from "./coverage.ts";
import { mutated, type Others } from "./mutate.ts";
import type { Target } from "./target.ts";
import { type TargetName, targetOf } from "./targets.ts";

export type Crash = { readonly input: Buffer; readonly message: string };
export type Share = { readonly all: number; readonly ran: number };

export type FuzzResult = {
  readonly runs: number;
  readonly crashes: readonly Crash[];
  readonly corpus: readonly Buffer[];
  readonly slowestMs: number;
  /** `own` counts the blocks of the target's own sources, `codec` those of all of src/h2. */
  readonly own: Share;
  readonly codec: Share;
};

export type FuzzOptions = {
  readonly name: TargetName;
  readonly seconds: number;
  readonly seed: number;
  readonly corpus: readonly Buffer[];
  /** Called before each input runs, so that an input that hangs is known. */
  readonly about?: (input: Buffer) => void;
};

const mostCrashes = 20;
/** Number of inputs between two readings of the counters. It grows while nothing new is found. */
const batches = { least: 16, most: 512 };

class Fuzzer {
  readonly #target: Target;
  readonly #coverage: Coverage;
  readonly #random: Random;
  readonly #options: FuzzOptions;
  readonly #words: readonly Buffer[];
  readonly corpus: Buffer[] = [];
  readonly crashes: Crash[] = [];
  runs = 0;
  slowestMs = 0;

  constructor(target: Target, coverage: Coverage, options: FuzzOptions) {
    this.#target = target;
    this.#coverage = coverage;
    this.#options = options;
    this.#random = seeded(options.seed);
    this.#words = target.words.map(toBuffer);
  }

  /** Runs the corpus and the seeds once, and keeps those that add coverage. */
  begin(): void {
    const known = [...this.#options.corpus, ...this.#target.seeds.map(toBuffer)];
    // Code that ran while the sources were loaded does not count as new.
    this.#coverage.gained(true);
    for (const input of known.toSorted((a, b) => a.length - b.length)) {
      this.#run(input);
      if (this.#coverage.gained(true)) this.corpus.push(input);
    }
    if (this.corpus.length === 0) this.corpus.push(Buffer.alloc(0));
  }

  play(untilMs: number): void {
    let size = batches.least;
    while (performance.now() < untilMs && this.crashes.length < mostCrashes) {
      const batch = Array.from({ length: size }, () => this.#next());
      for (const input of batch) this.#run(input);
      if (this.#coverage.gained(false)) {
        this.#keep(batch);
        size = batches.least;
      } else size = Math.min(batches.most, size * 2);
    }
  }

  #next(): Buffer {
    // Half of the time the input is one of the latest quarter of the corpus, because these have just reached new code.
    const from = this.#random.chance(0.5) ? Math.floor(this.corpus.length * 0.75) : 0;
    const input = this.corpus[from + this.#random.below(this.corpus.length - from)] ?? Buffer.alloc(0);
    const other = this.corpus[this.#random.below(this.corpus.length)] ?? input;
    const others: Others = { words: this.#words, other };
    return mutated(input, this.#random, others);
  }

  /** At least one of these inputs ran new code. Runs them again in halves, until each such input is found. */
  #keep(inputs: readonly Buffer[]): void {
    for (const input of inputs) this.#run(input);
    if (!this.#coverage.gained(inputs.length === 1)) return;
    const [only] = inputs;
    if (inputs.length === 1 && only !== undefined) {
      if (this.corpus.length < 4 * mostInputs) this.corpus.push(only);
      return;
    }
    this.#keep(inputs.slice(0, inputs.length >> 1));
    this.#keep(inputs.slice(inputs.length >> 1));
  }

  #run(input: Buffer): void {
    this.#options.about?.(input);
    const began = performance.now();
    try {
      this.#target.run(input);
    } catch (error) {
      const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
      if (!this.crashes.some((crash) => firstLines(crash.message) === firstLines(message)))
        this.crashes.push({ input, message });
    }
    this.runs += 1;
    this.slowestMs = Math.max(this.slowestMs, performance.now() - began);
  }
}

/** Returns the position of an error without its message, so that one fault is reported only once. */
function firstLines(message: string): string {
  return message
    .split("\n")
    .filter((line) => line.includes(" at "))
    .slice(0, 3)
    .join();
}

function toBuffer(input: Buffer | string): Buffer {
  return typeof input === "string" ? Buffer.from(input, "latin1") : input;
}

export async function fuzz(options: FuzzOptions): Promise<FuzzResult> {
  const coverage = new Coverage((url) => url.includes("/src/") || url.endsWith("/fuzz/maze.ts"));
  const target = await targetOf(options.name);
  const fuzzer = new Fuzzer(target, coverage, options);
  const untilMs = performance.now() + 1000 * options.seconds;
  fuzzer.begin();
  fuzzer.play(untilMs);
  const { runs, crashes, corpus, slowestMs } = fuzzer;
  const own = coverage.blocks((url) => target.sources.some((source) => url.endsWith(`/src/${source}.ts`)));
  const codec = coverage.blocks((url) => url.includes("/src/h2/"));
  coverage.stop();
  return { runs, crashes, corpus, slowestMs, own, codec };
}
