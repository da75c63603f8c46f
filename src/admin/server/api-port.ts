/**
 * Opens the API's port. While another process listens on the port, tries again at intervals, and the proxy serves
 * without the API. During an update, the other process is the proxy's own predecessor, so no incident is reported.
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

  /**
   * `isShared`: returns true if another process with this configuration, such as a second pod on the same node, may
   * already listen on the port.
   */
  constructor(options: ApiOptions, clock: Clock, isShared: () => boolean = () => false) {
    this.#options = options;
    this.#clock = clock;
    this.#isShared = isShared;
  }

  /** Address of the API as host:port; "" while the port is not bound. */
  get address(): string {
    return this.#admin?.address ?? "";
  }

  /** Tries to open the port. After a failure, returns the Failure, and tries again every `apiRetryMs` until `stop`. */
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

  /**
   * True if this failure is expected, because another process with this configuration listens on the port. This process
   * then waits until the other one ends.
   */
  isExpected(failure: Failure): boolean {
    return this.#isShared() && isPortTaken(failure);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#stopTimer?.();
    await this.#admin?.stop();
  }

  /** Tries again later. Reports the failure once, but only after a predecessor has had time to close the port. */
  #retry(failure: Failure): void {
    if (this.#isStopped) return;
    this.#failuresInRow += 1;
    if (this.#failuresInRow === adminLimits.apiFailures && !this.isExpected(failure))
      this.#options.journal.write({ kind: "listener.lost", listener: "admin", reason: failure.message });
    this.#stopTimer = this.#clock.after(adminLimits.apiRetryMs, () => void this.start());
  }
}
