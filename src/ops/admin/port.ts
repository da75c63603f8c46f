/**
 * One of the two admin ports, with its TLS certificate and its authorization. A reload can move the port to another
 * address. The new address opens before the old one closes. If both have the same port number, the old one closes first,
 * because two sockets cannot listen on overlapping addresses. If the port cannot be bound, it tries again at intervals.
 */
import { isDeepStrictEqual } from "node:util";
import type { Address } from "../../base/address.ts";
import type { Clock } from "../../base/clock.ts";
import { Failure, isPortTaken } from "../../base/failure.ts";
import type { Journal } from "../../events/journal.ts";
import { type ApiSecurity, apiCertificates, closeApiSecurity } from "../../proxy/cluster/api-security.ts";
import type { AccessConfig } from "../config/admin.ts";
import { adminLimits } from "./http/limits.ts";
import type { Admin } from "./server/server.ts";

export type PortParts<Settings> = {
  readonly clock: Clock;
  readonly journal: Journal;
  /** Name of the port in the journal. */
  readonly listener: "admin" | "metrics";
  /** Loads the certificate and the authorization of a port. The port stops both later. */
  readonly secure: (listener: "admin" | "metrics", settings: AccessConfig) => Promise<ApiSecurity>;
  /** `inherited`: descriptor of an inherited listening socket, which is used if it has the configured address. */
  readonly bind: (settings: Settings, security: ApiSecurity, inherited?: number) => Promise<Admin | Failure>;
  /**
   * True if another process with this configuration, such as a second pod on the same node, may already listen on the
   * port. This process then waits until the other one ends. Default: never.
   */
  readonly isShared?: () => boolean;
};

type Held<Settings> = { readonly settings: Settings; readonly security: ApiSecurity; admin?: Admin };

export class Port<Settings extends AccessConfig & { readonly address: Address }> {
  readonly #parts: PortParts<Settings>;
  /** The settings in force. `admin` is missing while the port is not bound. */
  #held: Held<Settings> | undefined;
  #failuresInRow = 0;
  /** A predecessor may have the port at the start, so failures are reported later than those of a port that was open. */
  #wasOpen = false;
  #isStopped = false;
  #cancelRetry = (): void => {};

  constructor(parts: PortParts<Settings>) {
    this.#parts = parts;
  }

  /** Address of the port as host:port; "" while it is not bound. */
  get address(): string {
    return this.#held?.admin?.address ?? "";
  }

  /** Descriptor of the listening socket, which a successor process inherits; undefined: none. */
  get descriptor(): number | undefined {
    return this.#held?.admin?.descriptor;
  }

  get certificates(): ReturnType<typeof apiCertificates> {
    return this.#held === undefined ? [] : apiCertificates(this.#held.security);
  }

  /** Opens the port. After a failure, returns the Failure, and tries again every `portRetryMs` until `stop`. */
  async start(settings: Settings, inherited?: number): Promise<Failure | undefined> {
    this.#held = await this.#secured(settings);
    return this.#open(this.#held, inherited);
  }

  /** Applies other settings. After a Failure, the old settings stay in force. */
  async move(settings: Settings): Promise<Failure | undefined> {
    const was = this.#held;
    if (was === undefined || isDeepStrictEqual(was.settings, settings)) return undefined;
    this.#cancelRetry();
    if (was.settings.address.port === settings.address.port) await closed(was);
    const next = await this.#secured(settings);
    const outcome = await this.#parts.bind(settings, next.security);
    if (outcome instanceof Failure && !this.#isExpected(outcome)) {
      closeApiSecurity(next.security);
      if (was.admin === undefined) await this.#open(was);
      return outcome;
    }
    await closed(was);
    closeApiSecurity(was.security);
    this.#held = next;
    if (outcome instanceof Failure) this.#retry(next, outcome);
    else await this.#opened(next, outcome);
    return undefined;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancelRetry();
    if (this.#held !== undefined) await closed(this.#held);
    this.release();
  }

  /** Stops the reloads of the certificate and the authorization. Does not close the port. */
  release(): void {
    if (this.#held !== undefined) closeApiSecurity(this.#held.security);
  }

  async #secured(settings: Settings): Promise<Held<Settings>> {
    const { secure, listener } = this.#parts;
    return { settings, security: await secure(listener, settings) };
  }

  async #open(held: Held<Settings>, inherited?: number): Promise<Failure | undefined> {
    const outcome = await this.#parts.bind(held.settings, held.security, inherited);
    if (outcome instanceof Failure) {
      this.#retry(held, outcome);
      return outcome;
    }
    await this.#opened(held, outcome);
    return undefined;
  }

  async #opened(held: Held<Settings>, admin: Admin): Promise<void> {
    if (this.#isStopped || held !== this.#held) return admin.stop();
    held.admin = admin;
    this.#failuresInRow = 0;
    this.#wasOpen = true;
    return undefined;
  }

  /** Tries again later. Reports the failure once. */
  #retry(held: Held<Settings>, failure: Failure): void {
    if (this.#isStopped || held !== this.#held) return;
    const { clock, journal, listener } = this.#parts;
    this.#failuresInRow += 1;
    const isDue = this.#failuresInRow === (this.#wasOpen ? 1 : adminLimits.portFailures);
    if (isDue && !this.#isExpected(failure))
      journal.write({ kind: "listener.lost", listener, reason: failure.message });
    this.#cancelRetry = clock.after(adminLimits.portRetryMs, () => void this.#open(held));
  }

  #isExpected(failure: Failure): boolean {
    return this.#parts.isShared?.() === true && isPortTaken(failure);
  }
}

async function closed(held: Held<unknown>): Promise<void> {
  const { admin } = held;
  delete held.admin;
  await admin?.stop();
}
