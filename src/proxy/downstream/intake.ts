/**
 * Accepts new clients only while the process has enough file descriptors (A24) and memory (A26). While either is short,
 * /readyz fails. It also fails for some time after that, so that a load balancer does not remove and add this proxy
 * again and again.
 */
import { readFileSync } from "node:fs";
import type { Clock } from "../../base/clock.ts";

/** Share of the process's file descriptor limit that client sockets may use. An Upgrade takes two descriptors (A24). */
export const connectionShare = 0.45;
/**
 * /readyz succeeds again when fewer client sockets than this share of the maximum are open, and no client was refused
 * in the last `intakeCalmMs`.
 */
const intakeEasy = 0.9;
export const intakeCalmMs = 10_000;

export type IntakeParts = {
  readonly clock: Clock;
  /** Maximum number of client sockets at a time, over all listeners. */
  readonly most: number;
  /** True if memory is so short that no new client may be accepted. */
  readonly isShort: () => boolean;
};

export class Intake {
  readonly #parts: IntakeParts;
  #count = 0;
  /**
   * Clock reading at which this process last refused a client, or would have refused one. Undefined: this has not
   * happened, or the process has recovered since.
   */
  #refusedAt: number | undefined;
  readonly #leave = (): void => {
    this.#count -= 1;
  };

  constructor(parts: IntakeParts) {
    this.#parts = parts;
  }

  /**
   * Counts one accepted socket. Returns a function that stops counting it, and must be called once; undefined: close
   * the socket at once.
   */
  enter(): (() => void) | undefined {
    const { clock, most, isShort } = this.#parts;
    if (this.#count >= most || isShort()) {
      this.#refusedAt = clock.now();
      return undefined;
    }
    this.#count += 1;
    return this.#leave;
  }

  /** The reason why clients should use another watchkeeper instance; "": there is none. */
  get complaint(): string {
    const { clock, most, isShort } = this.#parts;
    if (isShort()) {
      this.#refusedAt = clock.now();
      return "memory is short";
    }
    if (this.#count >= most) this.#refusedAt = clock.now();
    if (this.#refusedAt === undefined) return "";
    const isCalm = clock.now() - this.#refusedAt >= intakeCalmMs;
    if (isCalm && this.#count < most * intakeEasy) {
      this.#refusedAt = undefined;
      return "";
    }
    return `${this.#count} of ${most} connections, or some were refused lately`;
  }
}

export function mostSockets(): number {
  return Math.floor(openFilesLimit() * connectionShare);
}

/** Returns the process's soft limit on open files, from /proc on Linux. On other systems, assumes 1,024. */
function openFilesLimit(): number {
  try {
    const soft = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1];
    return Number(soft ?? 1024);
  } catch {
    return 1024; // no /proc on this system
  }
}
