/**
 * Whether a backend takes the identities that the proxy asserts with one of its certificates, as the canaries
 * (canary.ts) have shown. Requests that assert an identity go only to a backend that has proven it.
 */
import type { CanaryAnswer } from "./canary.ts";

/** unknown: no answer since the certificate, the backend or its address became new. */
export type IdentityVerdict = "unknown" | "proven" | "refused";

export type IdentityProof = {
  readonly verdict: IdentityVerdict;
  /** Why the verdict is "refused" or still "unknown"; "": it is "proven", or no canary has come back. */
  readonly problem: string;
  /** What a proven backend does not take; "": nothing. */
  readonly gap: string;
  /** Number of canaries without a result since the last one with a result. */
  readonly lost: number;
};

export const unasked: IdentityProof = { verdict: "unknown", problem: "", gap: "", lost: 0 };

/** Returns the proof after an answer. One without a result (429, 5xx, 404, a timeout) leaves the verdict as it is. */
export function proofAfter(proof: IdentityProof, answer: CanaryAnswer): IdentityProof {
  if (answer.kind === "proven") return { verdict: "proven", problem: "", gap: answer.gap, lost: 0 };
  if (answer.kind === "refused") return { verdict: "refused", problem: answer.problem, gap: "", lost: 0 };
  const problem = proof.verdict === "unknown" ? answer.problem : proof.problem;
  return { ...proof, problem, lost: proof.lost + 1 };
}

/** Ms after which a proven backend is asked again: its --requestheader-* flags may have changed. */
const provenMs = 3_600_000;
/** Ms after which a backend that has refused is asked again, and the longest wait after a canary without a result. */
const againMs = 10_000;
const firstAgainMs = 250;

/** Returns after how many ms the next canary is due. `random` is in [0, 1): proxies must not ask all at once. */
export function canaryDueMs({ verdict, lost }: IdentityProof, random: number): number {
  const retryMs = Math.min(againMs, firstAgainMs * 2 ** Math.min(lost - 1, 10));
  const baseMs = lost > 0 ? retryMs : verdict === "proven" ? provenMs : againMs;
  return baseMs * (0.9 + 0.2 * random);
}

/** After so many canaries without a result, about 4 s, a backend that is ready counts as unable to answer them. */
const lostForNews = 5;

/** Returns what operators must be told about a change of a backend's proof; undefined: nothing. */
export function newsIn(
  now: IdentityProof,
  was: IdentityProof,
  isReady: boolean,
): "proven" | "refused" | "dropped" | undefined {
  if (now === unasked) return was.problem === "" ? undefined : "dropped";
  const isOther = now.verdict !== was.verdict || now.problem + now.gap !== was.problem + was.gap;
  if (now.verdict !== "unknown") return isOther ? now.verdict : undefined;
  // A backend that is not ready has an incident of its own.
  return isReady && now.lost % lostForNews === 0 ? "refused" : undefined;
}
