/**
 * A port that a reload can move to another address. The new address opens before the old one closes. If both have the
 * same port number, the old one closes first, because two sockets cannot listen on overlapping addresses.
 */
import { isDeepStrictEqual } from "node:util";
import type { Address } from "../../base/address.ts";
import type { Clock } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import type { Journal } from "../../events/journal.ts";
import { adminLimits } from "../http/limits.ts";

type Opened = { stop(): Promise<void> };

export type MovablePortParts<Settings extends { readonly address: Address }, Port extends Opened> = {
  readonly clock: Clock;
  readonly journal: Journal;
  /** Name of the port in the journal. */
  readonly listener: string;
  /** Opens a port with these settings, and returns a Failure if it cannot be bound. */
  readonly open: (settings: Settings) => Promise<Port | Failure>;
};

export class MovablePort<Settings extends { readonly address: Address }, Port extends Opened> {
  readonly #parts: MovablePortParts<Settings, Port>;
  #settings: Settings;
  #port: Port | undefined;
  #isStopped = false;
  #stopTimer = (): void => {};

  constructor(settings: Settings, port: Port, parts: MovablePortParts<Settings, Port>) {
    this.#settings = settings;
    this.#port = port;
    this.#parts = parts;
  }

  /** The open port; undefined if a failed move has closed the port and it has not been opened again yet. */
  get port(): Port | undefined {
    return this.#port;
  }

  /** Applies other settings. After a Failure, the old settings stay in force. */
  async move(settings: Settings): Promise<Failure | undefined> {
    const was = this.#settings;
    if (isDeepStrictEqual(was, settings)) return undefined;
    const old = this.#port;
    const isSamePort = was.address.port === settings.address.port;
    if (isSamePort) await old?.stop();
    const next = await this.#parts.open(settings);
    if (next instanceof Failure) {
      if (isSamePort) await this.#reopen();
      return next;
    }
    if (!isSamePort) await old?.stop();
    this.#settings = settings;
    this.#port = next;
    return undefined;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#stopTimer();
    await this.#port?.stop();
  }

  /** Opens the port with its old settings. Retries, because another process may have taken the address meanwhile. */
  async #reopen(): Promise<void> {
    const { clock, journal, listener, open } = this.#parts;
    const outcome = await open(this.#settings);
    if (this.#isStopped) return outcome instanceof Failure ? undefined : outcome.stop();
    this.#port = outcome instanceof Failure ? undefined : outcome;
    if (!(outcome instanceof Failure)) return undefined;
    journal.write({ kind: "listener.lost", listener, reason: outcome.message });
    this.#stopTimer = clock.after(adminLimits.apiRetryMs, () => void this.#reopen());
    return undefined;
  }
}
