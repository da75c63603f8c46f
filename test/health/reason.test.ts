import { suite } from "uvu";
import * as assert from "uvu/assert";
import { reasonOf } from "../../src/health/reason.ts";

const test = suite("health/reason");

test("a reason says which detector saw it, what it measured against which bound, and a sentence", () => {
  assert.equal(reasonOf({ kind: "connections-silent", ms: 612.4, limitMs: 500 }), {
    detector: "ping",
    valueMs: 612,
    limitMs: 500,
    reason: "PING unanswered for 612 ms",
  });
});

test("hung reads are told with the longest wait and its bound", () => {
  const { valueMs, limitMs } = reasonOf({ kind: "reads-hanging", count: 3, ms: 612.4, limitMs: 500.2 });
  assert.equal([valueMs, limitMs], [612, 500]);
});

test("every kind of evidence is told in the operator's words", () => {
  const said = (evidence: Parameters<typeof reasonOf>[0]): string => {
    const { detector, reason } = reasonOf(evidence);
    return `${detector}: ${reason}`;
  };
  const dial = { kind: "fresh", begunAt: 0, ms: 12, reason: "connect ECONNREFUSED" } as const;
  const readyz = { kind: "readyz", ms: 2000, reason: "[-]etcd failed" } as const;
  assert.equal(
    [
      said({ kind: "connection-opened", ms: 4 }),
      said({ kind: "connections-answer" }),
      said({ kind: "connections-going" }),
      said({ kind: "connections-lost", by: "socket", reason: "read ECONNRESET" }),
      said({ kind: "connections-lost", by: "ping", reason: "PING unanswered for 2010 ms" }),
      said({ ...dial, met: "refusal" }),
      said({ ...dial, met: "answer" }),
      said({ ...dial, met: "untrusted", reason: "IP is not in the cert's list" }),
      said({ ...readyz, readiness: "failing" }),
      said({ ...readyz, readiness: "ready" }),
      said({ kind: "reads-hanging", count: 3, ms: 612, limitMs: 500 }),
      said({ kind: "reads-answer" }),
      said({ kind: "packets-lost", ms: 510, limitMs: 500 }),
      said({ kind: "alone" }),
      said({ kind: "drain", isDrained: true, by: "alice (CLI)" }),
    ],
    [
      "dial: a new connection answered",
      "ping: PINGs are answered again",
      "goaway: the backend sent GOAWAY on every connection",
      "socket: the last connection was lost: read ECONNRESET",
      "ping: the last connection was lost: PING unanswered for 2010 ms",
      "dial: dial failed: connect ECONNREFUSED",
      "dial: a new connection was answered",
      "certificate: dial failed: IP is not in the cert's list",
      "readyz: /readyz: [-]etcd failed",
      "readyz: /readyz: ok",
      "reads: 3 consecutive reads hung on the backend and were answered by others",
      "reads: reads are answered again",
      "packets: large packets to or from the backend are lost (path MTU?): PINGs are answered and TCP connects, but no response that takes a large packet arrives",
      "peers: the backend answers, and no other backend is ready",
      "operator: drained by alice (CLI)",
    ],
  );
});

test.run();
