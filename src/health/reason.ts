/** The reason why a backend's state changed, for the journal: the detector, its measurement and limit, and a text. */
import type { Evidence } from "./evidence.ts";

export type Reason = {
  readonly detector:
    | "ping"
    | "dial"
    | "socket"
    | "packets"
    | "readyz"
    | "reads"
    | "certificate"
    | "goaway"
    | "peers"
    | "history"
    | "operator";
  /** The detector's measurement and its limit, in milliseconds; 0: none. */
  readonly valueMs: number;
  readonly limitMs: number;
  readonly reason: string;
};

export function reasonOf(evidence: Evidence): Reason {
  const { valueMs, limitMs } = measured(evidence);
  return {
    detector: detectorOf(evidence),
    valueMs: Math.round(valueMs),
    limitMs,
    reason: sentence(evidence),
  };
}

function measured(evidence: Evidence): { valueMs: number; limitMs: number } {
  if ("limitMs" in evidence) return { valueMs: evidence.ms, limitMs: Math.round(evidence.limitMs) };
  return { valueMs: "ms" in evidence ? evidence.ms : 0, limitMs: 0 };
}

function detectorOf(evidence: Evidence): Reason["detector"] {
  if (evidence.kind === "connections-lost") return evidence.by;
  if (evidence.kind === "fresh") return evidence.met === "untrusted" ? "certificate" : "dial";
  return detectors[evidence.kind];
}

const detectors = {
  "connections-silent": "ping",
  "connections-answer": "ping",
  "connections-going": "goaway",
  "connection-opened": "dial",
  readyz: "readyz",
  "reads-hanging": "reads",
  "reads-answer": "reads",
  "packets-lost": "packets",
  drain: "operator",
  history: "history",
  alone: "peers",
} as const;

function sentence(evidence: Evidence): string {
  if (evidence.kind === "connections-silent") return `PING unanswered for ${Math.round(evidence.ms)} ms`;
  if (evidence.kind === "connections-lost") return `the last connection was lost: ${evidence.reason}`;
  if (evidence.kind === "fresh")
    return evidence.met === "answer" ? "a new connection was answered" : `dial failed: ${evidence.reason}`;
  if (evidence.kind === "readyz")
    return evidence.readiness === "ready" ? "/readyz: ok" : `/readyz: ${evidence.reason}`;
  if (evidence.kind === "reads-hanging")
    return `${evidence.count} consecutive reads hung on the backend and were answered by others`;
  if (evidence.kind === "history") return historySentence(evidence);
  return evidence.kind === "drain" ? drainSentence(evidence) : sentences[evidence.kind];
}

function drainSentence({ isDrained, by }: Extract<Evidence, { kind: "drain" }>): string {
  return `${isDrained ? "drained" : "undrained"} by ${by}`;
}

function historySentence({
  isForked,
  resource,
  version,
  seen,
}: Extract<Evidence, { kind: "history" }>): string {
  if (isForked)
    return `its etcd has a different history: ${resource} is at version ${version || "?"}, clients have seen ${seen}`;
  return seen === ""
    ? "no backend has the history that clients have seen"
    : "its etcd has what clients have seen";
}

const sentences = {
  "connection-opened": "a new connection answered",
  "connections-answer": "PINGs are answered again",
  "connections-going": "the backend sent GOAWAY on every connection",
  "reads-answer": "reads are answered again",
  "packets-lost":
    "large packets to or from the backend are lost (path MTU?): PINGs are answered and TCP connects, but no response that takes a large packet arrives",
  alone: "the backend answers, and no other backend is ready",
};
