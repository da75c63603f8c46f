/**
 * Notices a client that asks for one watch from one version again and again (incident 001): it was led back by an old
 * event, or cannot digest what it is sent, and replays history each time.
 */
import { limits } from "../../base/limits.ts";

/** One watch of one client, from one version on. */
export class Replay {
  #since = 0;
  #count = 0;
  #isTold = false;
  /** Those that are over, and were not asked for again yet. */
  #over = 0;

  /** It was asked for, and answered. Returns how often it was asked again lately, once a minute and only if too often. */
  asked(now: number): number | undefined {
    if (now - this.#since >= limits.replayMs) {
      this.#since = now;
      this.#count = 0;
      this.#isTold = false;
    }
    // Several alike at once are as many informers of one client, and no loop.
    if (this.#over === 0) return undefined;
    this.#over -= 1;
    this.#count += 1;
    if (this.#count < limits.replays || this.#isTold) return undefined;
    this.#isTold = true;
    return this.#count;
  }

  ended(): void {
    this.#over += 1;
  }
}

/** Those of all clients. What was asked for least lately is forgotten first. */
export class Replays {
  readonly #replays = new Map<string, Replay>();

  get size(): number {
    return this.#replays.size;
  }

  /** `key` names the client, the watch and the version. */
  of(key: string): Replay {
    const replay = this.#replays.get(key) ?? new Replay();
    this.#replays.delete(key);
    this.#replays.set(key, replay);
    if (this.#replays.size > limits.replayKeys) this.#forgetOldest();
    return replay;
  }

  #forgetOldest(): void {
    const [oldest] = this.#replays.keys();
    if (oldest !== undefined) this.#replays.delete(oldest);
  }
}
