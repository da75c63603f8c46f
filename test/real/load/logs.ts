/** An idle `logs -f` of one pod: whether it is still open, and when it ended. */
import type { Client } from "./client.ts";

export class Logs {
  /** Unix milliseconds. NaN while the log is open. */
  endedAt = Number.NaN;
  #heard = "";
  readonly #stream: ReturnType<Client["open"]>;

  /** `pod` is the pod's path in the API. */
  constructor(client: Client, pod: string) {
    this.#stream = client.open({ path: `${pod}/log?follow=true` });
    this.#stream.setEncoding("utf8");
    this.#stream.on("data", (text: string) => (this.#heard += text));
    this.#stream.on("close", () => (this.endedAt = Date.now()));
  }

  async shows(line: string, timeoutMs = 15_000): Promise<boolean> {
    const deadline = Date.now() + timeoutMs;
    while (Number.isNaN(this.endedAt) && Date.now() < deadline) {
      if (this.#heard.includes(line)) return true;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return false;
  }

  close(): void {
    this.#stream.close(8);
  }
}
