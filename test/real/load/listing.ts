/** A large LIST that stays in progress: the client reads the first piece and pauses until `resume` is called. */
import type { Client } from "./client.ts";

/** `whole`: every object came. `false`: the response ended normally but is incomplete, which must never happen. */
export type ListEnd = "whole" | "reset" | "headless" | "refused" | "false";

export class Listing {
  readonly ended: Promise<ListEnd>;
  readonly #stream: ReturnType<Client["open"]>;
  #mayGoOn = false;

  constructor(client: Client, path: string, count: number) {
    const stream = client.open({ path });
    this.#stream = stream;
    const { promise, resolve } = Promise.withResolvers<ListEnd>();
    this.ended = promise;
    const chunks: Buffer[] = [];
    let status = 0;
    let hasEnded = false;
    stream.on("response", (head) => (status = Number(head[":status"])));
    stream.once("data", () => {
      if (!this.#mayGoOn) stream.pause();
    });
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("end", () => (hasEnded = true));
    stream.on("close", () => {
      if (status === 0) resolve("headless");
      else if (status !== 200) resolve("refused");
      else if (!hasEnded || stream.rstCode !== 0) resolve("reset");
      else resolve(isWhole(Buffer.concat(chunks), count) ? "whole" : "false");
    });
  }

  /** May also be called before the first piece has come, because a busy apiserver takes seconds to send it. */
  resume(): void {
    this.#mayGoOn = true;
    this.#stream.resume();
  }
}

function isWhole(body: Buffer, count: number): boolean {
  try {
    return (JSON.parse(body.toString()) as { items: unknown[] }).items.length === count;
  } catch {
    return false; // an incomplete body is not valid JSON
  }
}
