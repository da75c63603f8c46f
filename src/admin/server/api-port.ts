/**
 * Keeps the API's port open. It is a window, and not worth an outage: a port that somebody else has is asked for again and
 * again, and the proxy serves meanwhile. During an update that somebody is the process before this one.
 */
import type { Clock } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import { adminLimits } from "../http/limits.ts";
import { type Admin, type ApiOptions, startApi } from "./server.ts";

export class ApiPort {
  readonly #options: ApiOptions;
  readonly #clock: Clock;
  #admin: Admin | undefined;
  #isStopped = false;
  #isLost = false;
  #stopTimer: (() => void) | undefined;

  constructor(options: ApiOptions, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
  }

  /** Where it is bound; "" while it is not. */
  get address(): string {
    return this.#admin?.address ?? "";
  }

  /** Resolves when it was tried for the first time. */
  async start(): Promise<void> {
    const outcome = await startApi(this.#options);
    if (outcome instanceof Failure) return this.#retry(outcome);
    this.#admin = outcome;
    if (this.#isStopped) await outcome.stop();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#stopTimer?.();
    await this.#admin?.stop();
  }

  /** Told once. */
  #retry({ message: reason }: Failure): void {
    if (this.#isStopped) return;
    if (!this.#isLost) this.#options.journal.write({ kind: "listener.lost", listener: "admin", reason });
    this.#isLost = true;
    this.#stopTimer = this.#clock.after(adminLimits.apiRetryMs, () => void this.start());
  }
}
