/**
 * Answers from the past, which one client may be given once after a failover without harm: only when it happens to the
 * same client again is it led back for good. Pure.
 */

import { limits } from "../base/limits.ts";
import { Lru } from "../base/lru.ts";
import type { Entry } from "../events/journal.ts";
import type { Found } from "./findings.ts";

type Outdated = Extract<Entry, { kind: "response.stale" }>;

export class OutdatedAnswers {
  /** When each client and resource was found last. */
  readonly #told = new Lru<string, number>(limits.anomalies);

  take(entry: Outdated, at: number): Found | undefined {
    const { client, userAgent, resource, backend, version, seen, cluster = "" } = entry;
    const name = `${client} ${userAgent}`.trim();
    const subject = `${name} ${resource}`;
    // What a client was shown of another cluster says nothing of this one.
    const key = `${cluster} ${subject}`;
    const before = this.#told.get(key) ?? Number.NEGATIVE_INFINITY;
    this.#told.set(key, at);
    if (at - before > limits.quietMs) return undefined;
    const text = `${backend} gave ${name} ${resource} at version ${version} again, after it had seen ${seen}`;
    const row = { at, detector: "list", value: 0, threshold: 0, unit: "" as const, text };
    return { kind: "version-regression", subject, backend, summary: text, evidence: [row], affected: name };
  }
}
