/** Journals that a certificate of the proxy or of a backend expires soon, and that it was replaced. */
import { type Clock, timestampOf } from "../../base/clock.ts";
import { Interval } from "../../base/interval.ts";
import type { Journal } from "../../events/journal.ts";
import { incidentLimits } from "./limits.ts";

/** "soon": expires within a week, or a month for a loopback certificate. "now": within a day. "over": has expired. */
export type ExpiryLevel = "ok" | "soon" | "now" | "over";

/**
 * Returns the level of a certificate that expires in `leftMs` milliseconds. A loopback certificate becomes "soon"
 * earlier, because only a restart of its apiserver renews it.
 */
export function levelOf(leftMs: number, purpose: string): ExpiryLevel {
  if (leftMs <= 0) return "over";
  if (leftMs <= incidentLimits.expiryNowMs) return "now";
  return leftMs <= soonMs(purpose) ? "soon" : "ok";
}

/** Returns how many milliseconds before expiry the level begins. */
export function thresholdOf(level: ExpiryLevel, purpose: string): number {
  if (level === "over") return 0;
  return level === "now" ? incidentLimits.expiryNowMs : soonMs(purpose);
}

function soonMs(purpose: string): number {
  return purpose === "backend-loopback" ? incidentLimits.loopbackExpirySoonMs : incidentLimits.expirySoonMs;
}

/**
 * `cluster`: the cluster that uses the certificate, as in the journal; undefined or "": none uses it, or only one
 * cluster exists.
 */
type Certificate = {
  readonly purpose: string;
  readonly name: string;
  readonly notAfterMs: number;
  readonly cluster?: string;
};

export type ExpiryWatchParts = {
  readonly clock: Clock;
  readonly journal: Journal;
  readonly certificates: () => readonly Certificate[];
};

type ReportedCertificate = Certificate & { readonly level: ExpiryLevel };

export class ExpiryWatch extends Interval {
  readonly #parts: ExpiryWatchParts;
  readonly #reported = new Map<string, ReportedCertificate>();

  constructor(parts: ExpiryWatchParts) {
    super(parts.clock, incidentLimits.expiryLookMs, () => this.#look());
    this.#parts = parts;
  }

  #look(): void {
    const certificates = this.#parts.certificates();
    for (const certificate of certificates) this.#judge(certificate);
    const keys = new Set(certificates.map(keyOf));
    for (const [key, reported] of this.#reported) if (!keys.has(key)) this.#renewed(key, reported, "");
  }

  #judge(certificate: Certificate): void {
    const { purpose, name, notAfterMs, cluster = "" } = certificate;
    const key = keyOf(certificate);
    const reported = this.#reported.get(key);
    const leftMs = notAfterMs - this.#parts.clock.wall();
    const level = levelOf(leftMs, purpose);
    if (reported !== undefined && reported.notAfterMs !== notAfterMs)
      this.#renewed(key, certificate, timestampOf(notAfterMs));
    if (level === "ok" || this.#reported.get(key)?.level === level) return;
    this.#reported.set(key, { ...certificate, level });
    this.#parts.journal.of(cluster).write({
      kind: "certificate.expiring",
      purpose,
      name,
      notAfter: timestampOf(notAfterMs),
      leftMs: Math.round(leftMs),
      limitMs: thresholdOf(level, purpose),
    });
  }

  #renewed(key: string, { purpose, name, cluster = "" }: Certificate, notAfter: string): void {
    this.#reported.delete(key);
    this.#parts.journal.of(cluster).write({ kind: "certificate.renewed", purpose, name, notAfter });
  }
}

function keyOf({ purpose, name }: Certificate): string {
  return `${purpose} ${name}`;
}
