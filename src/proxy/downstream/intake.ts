/**
 * Decides whether new clients are accepted: while there are descriptors (A24) and memory (A26). /readyz reports the same,
 * with hysteresis, so that a load balancer does not remove and add this proxy again and again.
 */
import { readFileSync } from "node:fs";
import type { Clock } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";

export type IntakeParts = {
  readonly clock: Clock;
  /** The most client sockets at a time, over all listeners. */
  readonly most: number;
  /** True if memory is so scarce that no new client may be accepted. */
  readonly isShort: () => boolean;
};

export class Intake {
  readonly #parts: IntakeParts;
  #count = 0;
  /** When a client was last refused, or would have been; undefined once that is long ago. */
  #refusedAt: number | undefined;

  constructor(parts: IntakeParts) {
    this.#parts = parts;
  }

  /** Counts one accepted socket. Returns the function that releases it; undefined: the socket must be closed. */
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
   * Why clients should go elsewhere, or "": from the moment at which the next one would be refused, until there is room
   * to spare and none has been refused for `limits.intakeCalmMs`.
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

/** Of the process's file descriptors, the number that client sockets may take. */
export function mostSockets(): number {
  return Math.floor(openFilesLimit() * limits.connectionShare);
}

/** Linux has it in /proc; elsewhere POSIX' usual soft limit is assumed. */
function openFilesLimit(): number {
  try {
    const soft = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1];
    return Number(soft ?? 1024);
  } catch {
    return 1024; // no /proc on this system
  }
}
