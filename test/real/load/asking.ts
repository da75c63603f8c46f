/** Requests at a fixed rate. Each is independent of the others, so a request that hangs delays no other. */
import type { Client, Heard, Question } from "./client.ts";

export type Asked<T> = { readonly tag: T; readonly heard: Heard };

export class Asking<T> {
  readonly heard: Asked<T>[] = [];
  readonly #under: Set<Promise<void>> = new Set();
  readonly #timers: ReturnType<typeof setInterval>[];
  #count = 0;

  /** Every client sends a request every `intervalMs`, out of phase with the other clients. */
  constructor(
    clients: readonly Client[],
    intervalMs: number,
    next: (number: number) => { tag: T; question: Question },
  ) {
    this.#timers = clients.map((client) =>
      setInterval(() => {
        const { tag, question } = next(this.#count++);
        this.#under.add(this.#ask(client, question, tag));
      }, intervalMs),
    );
  }

  async #ask(client: Client, question: Question, tag: T): Promise<void> {
    this.heard.push({ tag, heard: await client.ask(question) });
  }

  /** Sends no more requests. Resolves when all requests have a response. */
  async stop(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    await Promise.all(this.#under);
  }
}

/** True if a client would see the response as a failure. */
export function isFailure({ status, ending }: Heard): boolean {
  return ending !== "whole" || status >= 500 || status === 429;
}

/** Returns the failures' reasons with their counts: "503 ×4, reset 2 ×1". */
export function reasons(heard: readonly Heard[]): string {
  const counts = new Map<string, number>();
  for (const one of heard) {
    const reason = one.ending === "whole" ? String(one.status) : `${one.ending}: ${one.why}`;
    counts.set(reason, (counts.get(reason) ?? 0) + 1);
  }
  return [...counts].map(([reason, count]) => `${reason} ×${count}`).join(", ");
}
