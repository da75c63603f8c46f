import { suite } from "uvu";
import * as assert from "uvu/assert";
import {
  type BackendFacts,
  backendStates,
  connectionStates,
  type Facts,
  judge,
  neededSuccesses,
  noFacts,
  type Rules,
  verdictOf,
} from "../../src/health/backend.ts";
import type { Evidence, Readiness } from "../../src/health/evidence.ts";
import { healthLimits } from "../../src/health/limits.ts";

const test = suite("health/backend");

const rules: Rules = { rise: 4, needsProof: true };
const freshes: BackendFacts["fresh"][] = ["none", "answer", "refusal", "silence"];
const readings: BackendFacts["reads"][] = ["answering", "hanging"];
const readinesses: Readiness[] = ["unknown", "ready", "failing", "hanging", "shutdown"];

const fresh = (
  met: "answer" | "refusal" | "silence" | "untrusted",
  begunAt: number,
): Extract<Evidence, { kind: "fresh" }> => ({
  kind: "fresh",
  met,
  begunAt,
  ms: 3,
  reason: met,
});
const readyz = (readiness: Readiness | "forbidden"): Evidence => ({
  kind: "readyz",
  readiness,
  ms: 3,
  reason: readiness,
});
const opened: Evidence = { kind: "connection-opened", ms: 3 };
const silent: Evidence = { kind: "connections-silent", ms: 512, limitMs: 500 };
const lost: Evidence = { kind: "connections-lost", by: "socket", reason: "read ECONNRESET" };
const inputs: readonly Evidence[] = [
  opened,
  silent,
  { kind: "connections-answer" },
  { kind: "connections-going" },
  lost,
  ...(["answer", "refusal", "silence", "untrusted"] as const).flatMap((met) => [
    fresh(met, 50),
    fresh(met, 150),
  ]),
  ...[...readinesses, "forbidden" as const].map(readyz),
  { kind: "reads-hanging", count: 3, ms: 612, limitMs: 500 },
  { kind: "reads-answer" },
  { kind: "drain", isDrained: true, by: "alice" },
  { kind: "drain", isDrained: false, by: "alice" },
  { kind: "alone" },
  { kind: "history", isForked: true, resource: "/pods", version: "7", seen: "9" },
  { kind: "history", isForked: false, resource: "/pods", version: "9", seen: "9" },
];

function everyFacts(): Facts[] {
  return connectionStates.flatMap((connections) =>
    freshes.flatMap((met) =>
      [true, false].flatMap((isUntrusted) =>
        [true, false].flatMap((isDrained) =>
          readinesses.flatMap((readiness) =>
            readings.flatMap((reads) =>
              [true, false].map((isForked) => ({
                connections,
                fresh: met,
                isUntrusted,
                isDrained,
                isForked,
                readiness,
                reads,
              })),
            ),
          ),
        ),
      ),
    ),
  );
}

/** All 9,600 combinations of a state with facts. The tests apply every kind of evidence to each of them. */
function everyHeld(): BackendFacts[] {
  return everyFacts().flatMap((facts) =>
    backendStates.map((state) => ({ ...noFacts, ...facts, state, doubtedAt: 100, answeredAt: 40 })),
  );
}

/** The facts after this evidence. */
function after(held: BackendFacts, ...evidence: readonly Evidence[]): BackendFacts {
  return evidence.reduce((now, one) => judge(now, one, arrivalOf(one), rules), held);
}

/** The time at which evidence arrives: 200, or the time at which its socket got its result, if that is later. */
function arrivalOf(evidence: Evidence): number {
  return evidence.kind === "fresh" ? Math.max(200, evidence.begunAt + evidence.ms) : 200;
}

const ready = after(noFacts, opened, readyz("ready"));

test("the table in words: each of the 1,920 combinations of facts has the verdict that the design gives it", () => {
  for (const facts of everyFacts()) {
    const { connections, fresh: met, isUntrusted, isDrained, isForked, readiness, reads } = facts;
    const isGone = connections === "lost" || connections === "left";
    const isSilent = connections === "silent" || isGone;
    const proven = isGone && (met === "refusal" || met === "silence");
    const leaves = readiness === "shutdown";
    const fails = readiness === "failing" || readiness === "hanging";
    const expected = (): string => {
      if (proven || isForked) return "dead";
      if (isGone && leaves) return "draining";
      if (connections === "left" && met === "none") return "draining";
      if (isGone && isDrained) return "draining";
      if (isSilent || isUntrusted) return "suspect";
      if (leaves) return "draining";
      if (fails || reads === "hanging") return "suspect";
      if (isDrained) return "draining";
      return { answering: "ready", going: "draining", none: "unknown" }[connections];
    };
    assert.is(verdictOf(facts), expected(), JSON.stringify(facts));
  }
});

test("every state, whatever is held with it, knows what to do with every piece of evidence", () => {
  let count = 0;
  for (const held of everyHeld()) {
    for (const evidence of inputs) {
      const next = judge(held, evidence, 200, rules);
      const verdict = verdictOf(next);
      count += 1;
      // Damping may delay only a recovery.
      const isHeldBack = verdict === "ready" && next.state === "suspect";
      const wasDown = held.state === "suspect" || held.state === "dead";
      assert.ok(next.state === verdict || (isHeldBack && wasDown), JSON.stringify({ held, evidence, next }));
      if (next.state === "dead")
        assert.ok(
          next.isForked || ["left", "lost"].includes(next.connections),
          "never dead with a connection",
        );
    }
  }
  assert.is(count, 9600 * inputs.length);
});

test("one whose etcd has another history is dead although it answers, until it has what clients have seen", () => {
  const forked = { kind: "history", isForked: true, resource: "/pods", version: "7", seen: "9" } as const;
  const held = after(ready, forked);
  assert.is(held.state, "dead");
  assert.is(after(held, readyz("ready"), opened, { kind: "alone" }).state, "dead");
  const back = after(held, { ...forked, isForked: false });
  assert.is(back.state, "suspect", "as any that comes back");
  assert.is(after(back, ...Array.from({ length: 4 }, () => readyz("ready"))).state, "ready");
});

test("dead takes both: no upstream connection left, and a fresh socket begun since the doubt that got no answer", () => {
  assert.is(after(ready, silent).state, "suspect");
  assert.is(
    after(ready, silent, fresh("silence", 210)).state,
    "suspect",
    "its connections are not given up yet",
  );
  assert.is(after(ready, silent, lost).state, "suspect", "no probe has asked on a fresh socket");
  assert.is(after(ready, silent, fresh("silence", 210), lost).state, "dead");
  assert.is(after(ready, lost, fresh("refusal", 210)).state, "dead");
  assert.is(after(ready, silent, fresh("silence", 190), lost).state, "suspect", "that one began before");
  assert.is(after(ready, silent, fresh("answer", 210), lost).state, "suspect", "it answers new sockets");
  assert.is(after(ready, lost, fresh("answer", 220), fresh("silence", 210)).state, "suspect", "overtaken");
  assert.is(after(ready, lost, fresh("answer", 220), fresh("silence", 230)).state, "dead");
});

test("a socket that began before another one's answer arrived proves nothing by its silence, whichever began first", () => {
  const early = judge(after(ready, silent), { ...fresh("answer", 210), ms: 900 }, 1110, rules);
  for (const begunAt of [205, 215, 1100]) {
    const late = judge(early, { ...fresh("silence", begunAt), ms: 1000 }, begunAt + 1000, rules);
    assert.equal([late.fresh, late.consecutiveTimeouts], ["answer", 0], `begun at ${begunAt}`);
  }
  assert.is(judge(early, fresh("silence", 1120), 2120, rules).fresh, "silence");
  // A refusal comes from the kernel, so it counts from the time at which it arrives.
  assert.is(judge(early, fresh("refusal", 1100), 1115, rules).fresh, "refusal");
  const reopened = judge(after(ready, silent), opened, 1110, rules);
  assert.is(judge(reopened, { ...fresh("silence", 1100), ms: 1000 }, 2100, rules).fresh, "answer");
});

test("a backend without connections that is answered after a silence answers again from then on", () => {
  const unreached = after(noFacts, fresh("silence", 150), fresh("silence", 160));
  assert.is(unreached.answersAgainAt, -1);
  assert.is(judge(unreached, fresh("answer", 2000), 2003, rules).answersAgainAt, 2003);
  assert.is(judge(unreached, opened, 2003, rules).answersAgainAt, 2003);
});

test("a backend that is set to drain does so while it is well, fails and dies as others do, and is ready once taken back", () => {
  const drained = after(ready, { kind: "drain", isDrained: true, by: "alice" });
  assert.is(drained.state, "draining");
  assert.is(after(drained, opened, readyz("ready"), { kind: "alone" }).state, "draining", "whatever it says");
  assert.is(after(drained, silent).state, "suspect");
  assert.is(after(drained, lost, fresh("refusal", 210)).state, "dead");
  const restarted = after(drained, lost, fresh("refusal", 210), opened, readyz("ready"));
  assert.is(restarted.state, "draining", "it comes back, and gets no client before the operator permits it");
  assert.is(after(restarted, { kind: "drain", isDrained: false, by: "alice" }).state, "ready");
});

test("without probes, the loss of the last upstream connection is all the proof there is", () => {
  assert.is(judge(ready, lost, 200, { ...rules, needsProof: false }).state, "dead");
});

const hung: Evidence = { kind: "reads-hanging", count: 3, ms: 612, limitMs: 500 };

/** The facts after this evidence, each piece of which arrives at its own clock reading. */
function through(
  held: BackendFacts,
  ...timed: readonly (readonly [at: number, evidence: Evidence])[]
): BackendFacts {
  return timed.reduce((now, [at, evidence]) => judge(now, evidence, at, rules), held);
}

test("what hangs its reads is suspect, whatever /readyz says at first: it may have asked etcd a second ago", () => {
  assert.is(through(ready, [200, hung]).state, "suspect");
  const soon = through(ready, [200, hung], [250, readyz("ready")], [3199, readyz("ready")]);
  assert.equal([soon.state, soon.reads], ["suspect", "hanging"]);
});

test("reads that hung are tried again after a while in which /readyz found nothing, or as soon as one comes back", () => {
  const goods = [3200, 3450, 3700, 3950].map((at) => [at, readyz("ready")] as const);
  assert.is(through(ready, [200, hung], ...goods.slice(1)).state, "suspect");
  assert.is(through(ready, [200, hung], ...goods).state, "ready");
  assert.is(through(ready, [200, hung], [1000, hung], ...goods).state, "suspect", "it hung again");
  assert.is(
    through(ready, [200, hung], [9000, readyz("failing")], [9001, readyz("hanging")]).reads,
    "hanging",
  );
  assert.is(through(ready, [200, hung], [300, { kind: "reads-answer" }]).reads, "answering");
});

test("a silence of all upstream connections explains the reads that hung: when it is over, nothing is held against them", () => {
  for (const evidence of [silent, lost])
    assert.is(through(ready, [200, hung], [300, evidence]).reads, "answering");
});

test("without probes, hung reads are no verdict: no evidence would ever show that they are answered again", () => {
  assert.is(judge(ready, hung, 200, { ...rules, needsProof: false }).state, "ready");
});

test("draining is never dead while it answers, and what answers PING but not /readyz is suspect", () => {
  const draining = after(ready, readyz("shutdown"));
  assert.is(draining.state, "draining");
  assert.is(after(draining, fresh("refusal", 210)).state, "draining");
  assert.is(
    after(draining, fresh("refusal", 210), lost).state,
    "draining",
    "that refusal was before the loss",
  );
  const gone = after(ready, { kind: "connections-going" }, lost, lost);
  assert.is(gone.state, "draining", "it sent GOAWAY on every connection");
  assert.is(after(gone, fresh("refusal", 210)).state, "dead");
  assert.is(
    after(gone, fresh("answer", 210)).state,
    "suspect",
    "it has come back, and a connection is to prove it",
  );
  assert.is(after(draining, lost, fresh("refusal", 210)).state, "dead");
  assert.is(after(ready, { kind: "connections-going" }).state, "draining");
  assert.is(after(ready, { kind: "connections-going" }, opened).state, "ready");
  for (const bad of ["failing", "hanging"] as const) assert.is(after(ready, readyz(bad)).state, "suspect");
  assert.is(after(ready, readyz("unknown")).state, "ready", "it does not permit the probe");
});

test("one fresh socket that meets silence is nothing while upstream connections answer; two in a row are a server that takes none", () => {
  assert.is(after(ready, fresh("silence", 210)).state, "ready");
  assert.is(after(ready, fresh("silence", 210), fresh("answer", 220), fresh("silence", 230)).state, "ready");
  assert.is(after(ready, fresh("silence", 210), fresh("silence", 220)).state, "suspect");
});

test("a certificate that is not to be trusted keeps new work away until it is right again", () => {
  const stranger = after(ready, fresh("untrusted", 210));
  assert.is(stranger.state, "suspect");
  assert.is(after(stranger, lost).state, "suspect", "it is not dead: it answers");
  const mended = after(stranger, fresh("answer", 220), ...Array<Evidence>(4).fill(readyz("ready")));
  assert.is(mended.state, "ready");
});

test("back in rotation after good answers in a row, twice as many with each fall, and at once when alone", () => {
  let held = ready;
  const good = readyz("ready");
  for (const needed of [4, 8, 16, 32, 64, 64]) {
    held = after(held, silent);
    assert.is(neededSuccesses(held, rules), needed);
    for (let count = 1; count < needed; count += 1) {
      held = after(held, { kind: "connections-answer" }, good);
      assert.is(held.state, "suspect");
    }
    held = after(held, good);
    assert.is(held.state, "ready");
  }
  assert.is(after(held, silent, { kind: "connections-answer" }, { kind: "alone" }).state, "ready");
  assert.is(after(held, silent, { kind: "alone" }).state, "suspect", "it does not answer");
});

test("one bad answer between good ones begins the count anew", () => {
  const down = after(
    ready,
    silent,
    { kind: "connections-answer" },
    ...Array<Evidence>(3).fill(readyz("ready")),
  );
  const again = after(
    down,
    silent,
    { kind: "connections-answer" },
    ...Array<Evidence>(3).fill(readyz("ready")),
  );
  assert.is(again.state, "suspect");
  assert.is(after(again, readyz("unknown")).state, "ready");
});

test("falls that are far apart are not the same trouble", () => {
  const once = judge(ready, silent, 1000, rules);
  const back = judge({ ...once, state: "ready" }, { kind: "connections-answer" }, 1100, rules);
  assert.is(judge(back, silent, 61_000, rules).ejections, 2);
  assert.is(judge(back, silent, 61_001, rules).ejections, 1);
});

test("good answers for sixteen seconds are enough, however far apart they come", () => {
  let held: BackendFacts = {
    ...noFacts,
    state: "suspect",
    connections: "answering",
    ejections: 5,
    ejectedAt: 0,
  };
  const good: Evidence = { kind: "readyz", readiness: "ready", ms: 1, reason: "" };
  for (let at = 1_000; at < 17_000; at += 1_000) {
    held = judge(held, good, at, rules);
    assert.is(held.state, "suspect");
  }
  assert.is(judge(held, good, 17_000, rules).state, "ready");
});

const forbidden: Evidence = { kind: "readyz", readiness: "forbidden", ms: 3, reason: "status 403" };
const said = readyz("ready");

/** An apiserver that answered /readyz was lost for two seconds, and is back with upstream connections that answer. */
const booting = through(ready, [200, said], [300, lost], [310, fresh("refusal", 305)], [2300, opened]);

test("an apiserver that has told its readiness is not ready while it answers 403: it boots, and has no RBAC yet", () => {
  const asked = [2310, 2400, 2500, 2600, 2700].map((at) => [at, forbidden] as const);
  const waiting = through(booting, ...asked);
  assert.equal([waiting.state, waiting.readiness], ["suspect", "failing"]);
  const goods = [2800, 2900, 3000, 3100].map((at) => [at, said] as const);
  assert.is(through(waiting, ...goods.slice(1)).state, "suspect");
  assert.is(through(waiting, ...goods).state, "ready");
  const first = through(noFacts, [10, opened], [20, readyz("failing")], [30, forbidden]);
  assert.is(first.state, "suspect", "500 has told, too");
  const left = through(ready, [200, readyz("shutdown")], [300, lost], [1300, opened], [1310, forbidden]);
  assert.is(left.state, "suspect", "nor one that has drained, which is not damped");
  const unseen = { ...ready, readinessAt: 100, doubtedAt: 150 };
  assert.is(
    through(unseen, [200, forbidden]).state,
    "suspect",
    "nor one that was called ready before it said so",
  );
});

test("one that answers nothing but 403 is ready in the end, and from then on at once", () => {
  const { forbiddenMs } = healthLimits;
  const goods = (from: number): (readonly [number, Evidence])[] =>
    [0, 250, 500, 750].map((ms) => [from + ms, forbidden] as const);
  const late = through(booting, [2310, forbidden], ...goods(2310 + forbiddenMs - 751));
  assert.is(late.state, "suspect");
  const through30 = through(late, ...goods(2310 + forbiddenMs));
  assert.equal([through30.state, through30.readiness], ["ready", "unknown"]);
  const again = through(through30, [60_000, lost], [62_000, opened], ...goods(62_010));
  assert.is(again.state, "suspect", "its second fall takes twice the answers");
  assert.is(through(again, ...goods(63_010)).state, "ready");
});

test("a 403 of one that is ready says nothing against it: an operator has removed the right to ask", () => {
  const held = through(ready, [200, said], [1200, forbidden]);
  assert.equal([held.state, held.readiness], ["ready", "unknown"]);
  assert.is(through(noFacts, [10, opened], [20, forbidden]).state, "ready", "nor of one that never told");
  const back = through(held, [1300, silent], [1400, { kind: "connections-answer" }]);
  assert.is(through(back, ...[1, 2, 3, 4].map((at) => [1400 + at, forbidden] as const)).state, "ready");
});

test.run();
