/** State that all parts of a run share: the clock, the random choices, the plans and the problems found. */
import type { Plan } from "./plan.ts";
import type { Random } from "./random.ts";
import type { World } from "./world.ts";

/** Number of body bytes that a backend has sent of its response, and whether it has ended the response. */
export type Said = { sentBytes: number; hasEnded: boolean };

export class Run {
  readonly world: World;
  readonly random: Random;
  readonly plans = new Map<number, Plan>();
  /** For each tag, the digest of the fields that its client sent. */
  readonly sent = new Map<number, string>();
  /** For each tag, the client that sent it, and whether a backend had already accepted that client's token. */
  readonly asked = new Map<number, { readonly client: string; readonly isProven: boolean }>();
  readonly #answers = new Map<number, Said[]>();
  /** For each tag, how often it has reached a backend. */
  readonly #attempts = new Map<number, number>();
  readonly problems: string[] = [];
  /** Number of bytes that arrived in the wrong place. */
  astray = 0;

  readonly #trace: ((line: string) => void) | undefined;

  constructor(world: World, random: Random, trace?: (line: string) => void) {
    this.world = world;
    this.random = random;
    this.#trace = trace;
  }

  /**
   * Records that a backend begins a response. A request may be sent to two backends, and the client must get the
   * complete response of one of them.
   */
  answering(tag: number): Said {
    const said = { sentBytes: 0, hasEnded: false };
    this.#answers.set(tag, [...this.answersTo(tag), said]);
    return said;
  }

  answersTo(tag: number): readonly Said[] {
    return this.#answers.get(tag) ?? [];
  }

  /** Writes a line to the trace when a seed is replayed. */
  tell(line: () => string): void {
    this.#trace?.(`${this.world.now().toFixed(1)} ${line()}`);
  }

  wrong(what: string): void {
    if (this.problems.length < 20) this.problems.push(`at ${this.world.now().toFixed(1)} ms: ${what}`);
  }

  /** Records that a backend received a request. Returns how often that has happened to this request. */
  attempted({ tag, method, fate }: Plan): number {
    const seen = (this.#attempts.get(tag) ?? 0) + 1;
    this.#attempts.set(tag, seen);
    // A refused stream was not processed. Any other write must reach a backend only once, whatever was lost.
    const most = fate === "refuse" ? 2 : 1;
    const isSafe = method === "GET" || method === "HEAD";
    if (!isSafe && seen > most) this.wrong(`tag ${tag}: ${method} was sent ${seen} times`);
    return seen;
  }
}
