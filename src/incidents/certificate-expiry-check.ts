/**
 * Checks the expiry of all certificates, ours and those of backends. Journals a certificate that passes a threshold,
 * and the replacement of one that was reported. It opens no connections.
 */
import { type Clock, timestampOf } from "../base/clock.ts";
import { Interval } from "../base/interval.ts";
import { limits } from "../base/limits.ts";
import type { Journal } from "../events/journal.ts";
import { type ExpiryLevel, levelOf, thresholdOf } from "./certificate-expiry.ts";

type Certificate = { readonly purpose: string; readonly name: string; readonly notAfterMs: number };

export type ExpiryWatchParts = {
  readonly clock: Clock;
  readonly journal: Journal;
  readonly certificates: () => readonly Certificate[];
};

type Told = Certificate & { readonly level: ExpiryLevel };

export class ExpiryWatch {
  readonly #parts: ExpiryWatchParts;
  /** The certificates reported as expiring; at most as many as there are certificates. */
  readonly #told = new Map<string, Told>();
  readonly #looks: Interval;

  constructor(parts: ExpiryWatchParts) {
    this.#parts = parts;
    this.#looks = new Interval(parts.clock, limits.expiryLookMs, () => this.#look());
  }

  start(): void {
    this.#looks.start();
  }

  stop(): void {
    this.#looks.stop();
  }

  #look(): void {
    const certificates = this.#parts.certificates();
    for (const certificate of certificates) this.#judge(certificate);
    const keys = new Set(certificates.map(keyOf));
    for (const [key, told] of this.#told) if (!keys.has(key)) this.#renewed(key, told, "");
  }

  #judge(certificate: Certificate): void {
    const { purpose, name, notAfterMs } = certificate;
    const key = keyOf(certificate);
    const told = this.#told.get(key);
    const leftMs = notAfterMs - this.#parts.clock.wall();
    const level = levelOf(leftMs, purpose);
    if (told !== undefined && told.notAfterMs !== notAfterMs)
      this.#renewed(key, certificate, timestampOf(notAfterMs));
    if (level === "ok" || this.#told.get(key)?.level === level) return;
    this.#told.set(key, { ...certificate, level });
    this.#parts.journal.write({
      kind: "certificate.expiring",
      purpose,
      name,
      notAfter: timestampOf(notAfterMs),
      leftMs: Math.round(leftMs),
      limitMs: thresholdOf(level, purpose),
    });
  }

  #renewed(key: string, { purpose, name }: Certificate, notAfter: string): void {
    this.#told.delete(key);
    this.#parts.journal.write({ kind: "certificate.renewed", purpose, name, notAfter });
  }
}

function keyOf({ purpose, name }: Certificate): string {
  return `${purpose} ${name}`;
}
