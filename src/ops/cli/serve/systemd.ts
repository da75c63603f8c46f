/**
 * Tells systemd what this process does, if its unit has Type=notify (sd_notify(3)). Node has no datagram sockets of the
 * Unix domain, so the command systemd-notify sends each message. The unit therefore needs NotifyAccess=all.
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { failureFrom } from "../../../base/failure.ts";
import type { Journal } from "../../../events/journal.ts";

const send = promisify(execFile);

/** Milliseconds within which systemd-notify must end. It waits for systemd itself, for up to 5 s. */
const sendMs = 10_000;

/** Reports this process as the main one from `ready` on, and each reload and handover until `stopping`. */
export class ServiceState {
  readonly #journal: Journal;
  readonly #isService: boolean;
  /** Messages are sent one after another, so that they arrive in order. */
  #last: Promise<void> = Promise.resolve();
  #end = (): void => {};

  constructor(journal: Journal, environment = process.env) {
    this.#journal = journal;
    this.#isService = environment["NOTIFY_SOCKET"] !== undefined;
  }

  ready(): void {
    this.#tell("READY=1", `MAINPID=${process.pid}`);
    const begins = (): void =>
      this.#tell("RELOADING=1", `MONOTONIC_USEC=${process.hrtime.bigint() / 1_000n}`);
    process.on("SIGHUP", begins);
    const unsubscribe = this.#journal.subscribe(({ kind }) => {
      if (kind === "successor.started") begins();
      // A successor that serves says so itself.
      if (["successor.failed", "config.reloaded", "config.refused"].includes(kind)) this.#tell("READY=1");
    });
    this.#end = () => {
      process.off("SIGHUP", begins);
      unsubscribe();
    };
  }

  /** `isHandedOver`: a successor is the main process by now, so this one's end is not the service's. */
  stopping(isHandedOver: boolean): void {
    this.#end();
    if (!isHandedOver) this.#tell("STOPPING=1");
  }

  #tell(...state: readonly string[]): void {
    if (this.#isService) this.#last = this.#last.then(() => this.#send(state));
  }

  async #send(state: readonly string[]): Promise<void> {
    try {
      await send("systemd-notify", state, { timeout: sendMs });
    } catch (reason) {
      const message = `Cannot tell systemd ${state[0]}: ${failureFrom(reason, "proxy").message}`;
      this.#journal.write({ kind: "internal.error", scope: "session", message });
    }
  }
}
