/**
 * When a certificate is about to expire: the thresholds depend on how it is renewed. All certificates are checked, ours and
 * those of backends; one that passes a threshold is journaled, and so is the replacement of one that was reported.
 */
import { type Clock, timestampOf } from "../base/clock.ts";
import { Interval } from "../base/interval.ts";
import type { Journal } from "../events/journal.ts";
import { incidentLimits } from "./limits.ts";

/** "over" means expired. */
export type ExpiryLevel = "ok" | "soon" | "now" | "over";

/** `purpose` as in the metric. Only a restart renews an apiserver's loopback certificate, so it is reported earlier. */
export function levelOf(leftMs: number, purpose: string): ExpiryLevel {
  if (leftMs <= 0) return "over";
  if (leftMs <= incidentLimits.expiryNowMs) return "now";
  return leftMs <= soonMs(purpose) ? "soon" : "ok";
}

/** The threshold of this level, in ms before expiry. */
export function thresholdOf(level: ExpiryLevel, purpose: string): number {
  if (level === "over") return 0;
  return level === "now" ? incidentLimits.expiryNowMs : soonMs(purpose);
}

function soonMs(purpose: string): number {
  return purpose === "backend-loopback" ? incidentLimits.loopbackExpirySoonMs : incidentLimits.expirySoonMs;
}

type Certificate = { readonly purpose: string; readonly name: string; readonly notAfterMs: number };

export type ExpiryWatchParts = {
  readonly clock: Clock;
  readonly journal: Journal;
  readonly certificates: () => readonly Certificate[];
};

type Told = Certificate & { readonly level: ExpiryLevel };

export class ExpiryWatch extends Interval {
  readonly #parts: ExpiryWatchParts;
  /** The certificates reported as expiring; at most as many as there are certificates. */
  readonly #told = new Map<string, Told>();

  constructor(parts: ExpiryWatchParts) {
    super(parts.clock, incidentLimits.expiryLookMs, () => this.#look());
    this.#parts = parts;
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
