/**
 * Opens the API's port, and retries while another process uses it; meanwhile the proxy serves without the API. During
 * an update, the other process is this proxy's own predecessor, and no incident is reported.
 */
import type { Clock } from "../../base/clock.ts";
import { Failure, isPortTaken } from "../../base/failure.ts";
import { adminLimits } from "../http/limits.ts";
import { type Admin, type ApiOptions, startApi } from "./server.ts";

export class ApiPort {
  readonly #options: ApiOptions;
  readonly #clock: Clock;
  readonly #isShared: () => boolean;
  #admin: Admin | undefined;
  #isStopped = false;
  #failuresInRow = 0;
  #stopTimer: (() => void) | undefined;

  /** `isShared`: true if another process of this configuration may keep the port, as the second pod of a node does. */
  constructor(options: ApiOptions, clock: Clock, isShared: () => boolean = () => false) {
    this.#options = options;
    this.#clock = clock;
    this.#isShared = isShared;
  }

  /** Address of the API as host:port; "" while the port is not bound. */
  get address(): string {
    return this.#admin?.address ?? "";
  }

  /** Makes the first attempt to open the port. If it fails, returns the Failure; further attempts follow until `stop`. */
  async start(): Promise<Failure | undefined> {
    const outcome = await startApi(this.#options);
    if (outcome instanceof Failure) {
      this.#retry(outcome);
      return outcome;
    }
    this.#admin = outcome;
    if (this.#isStopped) await outcome.stop();
    return undefined;
  }

  /** True if another process of this configuration has the port, so that this process waits for its end. */
  isExpected(failure: Failure): boolean {
    return this.#isShared() && isPortTaken(failure);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#stopTimer?.();
    await this.#admin?.stop();
  }

  /** Schedules the next attempt. Reports the failure once, but only after a predecessor had time to close the port. */
  #retry(failure: Failure): void {
    if (this.#isStopped) return;
    this.#failuresInRow += 1;
    if (this.#failuresInRow === adminLimits.apiFailures && !this.isExpected(failure))
      this.#options.journal.write({ kind: "listener.lost", listener: "admin", reason: failure.message });
    this.#stopTimer = this.#clock.after(adminLimits.apiRetryMs, () => void this.start());
  }
}
