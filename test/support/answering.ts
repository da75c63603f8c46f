/**
 * Calls back once for each request that reaches a fake backend of a PlayedPath (path.ts: the data path on a manual
 * clock), so that the test can answer it. Checks for new requests every 10 ms of the manual clock.
 */
import type { Asked, PlayedPath } from "./path.ts";

const stepMs = 10;

export class Answering {
  readonly #path: PlayedPath;
  readonly #answer: (backend: string, asked: Asked) => void;
  readonly #seen = new Map<string, number>();

  constructor(path: PlayedPath, answer: (backend: string, asked: Asked) => void) {
    this.#path = path;
    this.#answer = answer;
  }

  run(ms: number): void {
    for (let at = 0; at < ms; at += stepMs) {
      this.#path.clock.advance(stepMs);
      this.#path.settle();
      for (const [name, { asked }] of this.#path.played) {
        const from = this.#seen.get(name) ?? 0;
        this.#seen.set(name, asked.length);
        for (const one of asked.slice(from)) this.#answer(name, one);
      }
      this.#path.settle();
    }
  }
}
