/** When a certificate is about to expire: thresholds that depend on how it is renewed. Pure. */
import { limits } from "../base/limits.ts";

/** "over" means expired. */
export type ExpiryLevel = "ok" | "soon" | "now" | "over";

/** `purpose` as in the metric. Only a restart renews an apiserver's loopback certificate, so it is reported earlier. */
export function levelOf(leftMs: number, purpose: string): ExpiryLevel {
  if (leftMs <= 0) return "over";
  if (leftMs <= limits.expiryNowMs) return "now";
  return leftMs <= soonMs(purpose) ? "soon" : "ok";
}

/** The threshold of this level, in ms before expiry. */
export function thresholdOf(level: ExpiryLevel, purpose: string): number {
  if (level === "over") return 0;
  return level === "now" ? limits.expiryNowMs : soonMs(purpose);
}

function soonMs(purpose: string): number {
  return purpose === "backend-loopback" ? limits.loopbackExpirySoonMs : limits.expirySoonMs;
}
