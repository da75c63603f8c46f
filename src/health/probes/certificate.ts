/**
 * Tracks when the certificates of the backends expire. The TLS handshake of every probe shows the serving certificate.
 * An apiserver also has a loopback certificate, for connections to itself; it presents this certificate for the server
 * name `apiserver-loopback-client`. When the loopback certificate expires, the apiserver stops working without any
 * other warning (incident 003).
 */
import type { TLSSocket } from "node:tls";
import { type Clock, timestampOf, wallOf } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";
import type { Journal } from "../../events/journal.ts";
import { healthLimits } from "../limits.ts";
import { stallAwareTimeout } from "../stall-aware-clock.ts";

export const loopbackName = "apiserver-loopback-client";

export type ExpiriesParts = {
  readonly clock: Clock;
  readonly journal: Journal;
  /** Opens a TLS socket to get the loopback certificate, without verifying it; undefined: the backend has no TLS. */
  readonly openLoopback: (backend: string) => TLSSocket | undefined;
};

type Expiry = { readonly purpose: string; readonly name: string; readonly notAfterMs: number };

export class Expiries {
  readonly #parts: ExpiriesParts;
  readonly #known = new Map<string, Expiry>();
  readonly #lookedAt = new Map<string, number>();

  constructor(parts: ExpiriesParts) {
    this.#parts = parts;
  }

  get all(): readonly Expiry[] {
    return [...this.#known.values()];
  }

  reconcile(backends: readonly string[]): void {
    for (const [key, { name }] of this.#known) if (!backends.includes(name)) this.#known.delete(key);
    for (const name of this.#lookedAt.keys()) if (!backends.includes(name)) this.#lookedAt.delete(name);
  }

  /** Records the serving certificate that a backend has presented; `notAfter` is in Node's format. */
  seen(backend: string, notAfter: string): void {
    this.#keep("backend", backend, notAfter);
    const { clock } = this.#parts;
    const looked = this.#lookedAt.get(backend);
    if (looked !== undefined && clock.now() - looked < healthLimits.loopbackLookMs) return;
    this.#lookedAt.set(backend, clock.now());
    this.#look(backend);
  }

  #keep(purpose: string, name: string, notAfter: string): void {
    const notAfterMs = wallOf(notAfter);
    const key = `${purpose} ${name}`;
    if (Number.isNaN(notAfterMs) || this.#known.get(key)?.notAfterMs === notAfterMs) return;
    this.#known.set(key, { purpose, name, notAfterMs });
    const { journal } = this.#parts;
    journal.write({
      kind: "certificate.observed",
      backend: name,
      purpose,
      notAfter: timestampOf(notAfterMs),
    });
  }

  #look(backend: string): void {
    const socket = this.#parts.openLoopback(backend);
    if (socket === undefined) return;
    const stop = stallAwareTimeout(this.#parts.clock, limits.dialMs, () => socket.destroy());
    socket.on("error", () => {});
    socket.on("close", stop);
    socket.on("secureConnect", () => {
      const certificate = socket.getPeerX509Certificate();
      // Only an apiserver has a loopback certificate. Other servers present their usual certificate for any name.
      if (certificate?.subject.includes(`CN=${loopbackName}`) === true)
        this.#keep("backend-loopback", backend, certificate.validTo);
      socket.destroy();
    });
  }
}
