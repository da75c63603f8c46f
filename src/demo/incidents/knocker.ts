/** Knocks again and again: a new connection each time, one GET, and whether it was answered. */

import { Visitor } from "../story/visitor.ts";
import type { Scene } from "./scene.ts";

const periodMs = 200;

export class Knocker {
  #asked = 0;
  #answered = 0;

  constructor(scene: Scene, { port, serverName }: { readonly port: number; readonly serverName: string }) {
    const ca = scene.files.authority.certificate;
    const fields = { authorization: `Bearer ${scene.setting.token}` };
    const knock = async (): Promise<void> => {
      for (;;) {
        const visitor = new Visitor({ port, ca, serverName, fields });
        const status = await visitor.ask("GET /api/v1/namespaces/default");
        visitor.close();
        this.#asked += 1;
        if (status === 200) this.#answered += 1;
        await scene.pause(periodMs);
      }
    };
    void knock();
  }

  /** Counts anew. */
  reset(): void {
    this.#asked = 0;
    this.#answered = 0;
  }

  get isServed(): boolean {
    return this.#asked > 0 && this.#asked === this.#answered;
  }

  toString(): string {
    return `${this.#answered} of ${this.#asked}`;
  }
}
