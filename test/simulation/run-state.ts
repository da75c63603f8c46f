/** What everybody in a run shares: its time and choices, what was planned, and what was found wrong. */
import type { Plan } from "./plan.ts";
import type { Random } from "./random.ts";
import type { World } from "./world.ts";

/** Bytes of its answer that a backend sent, and whether it ended it. */
export type Said = { sentBytes: number; hasEnded: boolean };

export class Run {
  readonly world: World;
  readonly random: Random;
  readonly plans = new Map<number, Plan>();
  /** Digest of the fields that each tag's client sent. */
  readonly sent = new Map<number, string>();
  /** The client that sent each tag, and whether a backend had accepted that client's token before. */
  readonly asked = new Map<number, { readonly client: string; readonly isProven: boolean }>();
  readonly #answers = new Map<number, Said[]>();
  /** How often backends saw each tag. */
  readonly #attempts = new Map<number, number>();
  readonly problems: string[] = [];
  /** Bytes that arrived where they do not belong. */
  astray = 0;

  readonly #trace: ((line: string) => void) | undefined;

  constructor(world: World, random: Random, trace?: (line: string) => void) {
    this.world = world;
    this.random = random;
    this.#trace = trace;
  }

  /** A backend begins an answer: whichever of two that were asked the client is given, it has it from one of them. */
  answering(tag: number): Said {
    const said = { sentBytes: 0, hasEnded: false };
    this.#answers.set(tag, [...this.answersTo(tag), said]);
    return said;
  }

  answersTo(tag: number): readonly Said[] {
    return this.#answers.get(tag) ?? [];
  }

  /** Traces what happens, when a seed is replayed. */
  tell(line: () => string): void {
    this.#trace?.(`${this.world.now().toFixed(1)} ${line()}`);
  }

  wrong(what: string): void {
    if (this.problems.length < 20) this.problems.push(`at ${this.world.now().toFixed(1)} ms: ${what}`);
  }

  /** A backend has a request in hand; returns how many times this one has been by now. */
  attempted({ tag, method, fate }: Plan): number {
    const seen = (this.#attempts.get(tag) ?? 0) + 1;
    this.#attempts.set(tag, seen);
    // A refused stream was not processed; anything else that writes must be seen once, whatever was lost.
    const most = fate === "refuse" ? 2 : 1;
    const isSafe = method === "GET" || method === "HEAD";
    if (!isSafe && seen > most) this.wrong(`tag ${tag}: ${method} was sent ${seen} times`);
    return seen;
  }
}
