/**
 * Whether new clients are let in: as long as there are descriptors (A24) and memory (A26). It says so to /readyz too, with
 * hysteresis, so that a balancer in front does not send clients here and away by turns.
 */
import { readFileSync } from "node:fs";
import type { Clock } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";

export type IntakeParts = {
  readonly clock: Clock;
  /** Sockets of clients at once, of all listeners together. */
  readonly most: number;
  /** Is memory so scarce that no new client may come in? */
  readonly isShort: () => boolean;
};

export class Intake {
  readonly #parts: IntakeParts;
  #count = 0;
  /** When a client was refused last, or would have been; undefined once that is long ago. */
  #refusedAt: number | undefined;

  constructor(parts: IntakeParts) {
    this.#parts = parts;
  }

  /** Takes one socket in; the returned function lets it go. Undefined: it has to be closed. */
  enter(): (() => void) | undefined {
    const { clock, most, isShort } = this.#parts;
    if (this.#count >= most || isShort()) {
      this.#refusedAt = clock.now();
      return undefined;
    }
    this.#count += 1;
    return () => {
      this.#count -= 1;
    };
  }

  /**
   * Why clients had better go elsewhere, or "": from the moment at which the next one would be refused, until there
   * is room to spare and none has been refused for `limits.intakeCalmMs`.
   */
  get complaint(): string {
    const { clock, most, isShort } = this.#parts;
    if (isShort()) {
      this.#refusedAt = clock.now();
      return "memory is short";
    }
    if (this.#count >= most) this.#refusedAt = clock.now();
    if (this.#refusedAt === undefined) return "";
    const isCalm = clock.now() - this.#refusedAt >= limits.intakeCalmMs;
    if (isCalm && this.#count < most * limits.intakeEasy) {
      this.#refusedAt = undefined;
      return "";
    }
    return `${this.#count} of ${most} connections, or some were refused lately`;
  }
}

/** Of the descriptors that this process may have, those that clients' sockets may take. */
export function mostSockets(): number {
  return Math.floor(openFilesLimit() * limits.connectionShare);
}

/** Linux tells in /proc; elsewhere POSIX' usual soft limit is assumed. */
function openFilesLimit(): number {
  try {
    const soft = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1];
    return Number(soft ?? 1024);
  } catch {
    return 1024; // no /proc on this system
  }
}
