/** When the end of a certificate is near: thresholds that depend on how it is renewed. Pure. */
import { limits } from "../base/limits.ts";

/** How near; "over" is past it. */
export type ExpiryLevel = "ok" | "soon" | "now" | "over";

/** `purpose` as the metric has it: only a restart renews an apiserver's loopback certificate, so it is told earlier. */
export function levelOf(leftMs: number, purpose: string): ExpiryLevel {
  if (leftMs <= 0) return "over";
  if (leftMs <= limits.expiryNowMs) return "now";
  return leftMs <= soonMs(purpose) ? "soon" : "ok";
}

/** The threshold that this level has passed, in ms before the end. */
export function thresholdOf(level: ExpiryLevel, purpose: string): number {
  if (level === "over") return 0;
  return level === "now" ? limits.expiryNowMs : soonMs(purpose);
}

function soonMs(purpose: string): number {
  return purpose === "backend-loopback" ? limits.loopbackExpirySoonMs : limits.expirySoonMs;
}
