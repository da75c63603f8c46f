import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type Entry, Journal } from "../../src/events/journal.ts";
import { Backends } from "../../src/health/backends.ts";
import { StallAwareClock } from "../../src/health/stall-aware-clock.ts";
import { manualClock } from "../support/clock.ts";

const test = suite("health/backends");
const opened = { kind: "connection-opened", ms: 7 } as const;
const lost = { kind: "connections-lost", by: "socket", reason: "read ECONNRESET" } as const;
const silent = { kind: "connections-silent", ms: 600, limitMs: 500 } as const;
const rules = { rise: 4, needsProof: true };
const answers = { kind: "connections-answer" } as const;

test("a change of verdict is journaled once, with its reason and time", () => {
  const clock = manualClock();
  const journal = new Journal(clock);
  const entries: Entry[] = [];
  journal.subscribe((entry) => entries.push(entry));
  const backends = new Backends(["a"], { clock, journal });
  assert.equal(entries.splice(0), [{ kind: "backend.added", backend: "a" }]);
  clock.advance(40);
  backends.learn("a", opened);
  backends.learn("a", opened);
  assert.equal(backends.views, [{ name: "a", state: "ready", since: 40 }]);
  assert.equal(entries, [
    {
      kind: "backend.changed",
      backend: "a",
      from: "unknown",
      to: "ready",
      detector: "dial",
      valueMs: 7,
      limitMs: 0,
      reason: "a new connection answered",
    },
  ]);
});

test("those that stay keep their verdict, newcomers are unknown, evidence of the gone is ignored", () => {
  const clock = manualClock();
  const backends = new Backends(["a", "b"], { clock, journal: new Journal(clock) });
  backends.learn("b", opened);
  backends.reconcile(["b", "c"]);
  backends.learn("a", opened);
  assert.equal(
    backends.views.map(({ name, state }) => `${name} ${state}`),
    ["b ready", "c unknown"],
  );
});

test("an owner without PINGs of its own is told once that its backend is dead and silent, and not of one that refuses", () => {
  const clock = manualClock();
  const backends = new Backends(["a", "b"], { clock, journal: new Journal(clock), rules });
  const heard: string[] = [];
  backends.onLost("a", () => heard.push("a"));
  backends.onLost("b", () => heard.push("b"));
  backends.onLost("a", () => heard.push("forgotten"))();
  const fresh = (met: "refusal" | "silence") =>
    ({ kind: "fresh", met, begunAt: clock.now(), ms: 1000, reason: met }) as const;
  for (const evidence of [opened, lost]) backends.learn("a", evidence);
  clock.advance(100);
  backends.learn("a", fresh("refusal"));
  assert.is(backends.views[0]?.state, "dead");
  assert.equal(heard, [], "its kernel lives, and tells of the dead process itself");
  clock.advance(250);
  for (const evidence of [fresh("silence"), fresh("silence")]) backends.learn("a", evidence);
  assert.equal(heard, ["a"]);
});

test("one that keeps falling stays down while another is ready, and is taken at once when none is", () => {
  const clock = manualClock();
  const backends = new Backends(["a", "b"], { clock, journal: new Journal(clock), rules });
  const state = (name: string): string => backends.views.find((view) => view.name === name)?.state ?? "";
  for (const name of ["a", "b"]) backends.learn(name, opened);
  backends.learn("a", silent);
  backends.learn("a", answers);
  assert.equal([state("a"), state("b")], ["suspect", "ready"]);
  backends.learn("b", silent);
  assert.equal([state("a"), state("b")], ["ready", "suspect"]);
});

test("the only backend is ready again with its first answer", () => {
  const clock = manualClock();
  const backends = new Backends(["a"], { clock, journal: new Journal(clock), rules });
  for (const evidence of [opened, silent, answers]) backends.learn("a", evidence);
  assert.is(backends.views[0]?.state, "ready");
});

test("the time under suspicion is summed", () => {
  const clock = manualClock();
  const backends = new Backends(["a", "b"], { clock, journal: new Journal(clock) });
  for (const evidence of [opened, silent]) backends.learn("a", evidence);
  clock.advance(700);
  backends.learn("a", answers);
  clock.advance(5000);
  backends.learn("a", silent);
  clock.advance(300);
  assert.is(backends.suspectMs("a"), 1000);
});

test("that what waits may wait on again is told, even while the verdict stays suspect", () => {
  const clock = manualClock();
  const told: boolean[] = [];
  const backends = new Backends(["a", "b"], {
    clock,
    journal: new Journal(clock),
    rules,
    onNeed: (name, isNeeded) => name === "a" && told.push(isNeeded),
  });
  for (const name of ["a", "b"]) backends.learn(name, { kind: "connection-opened", ms: 1 });
  backends.learn("a", { kind: "connections-silent", ms: 600, limitMs: 600 });
  backends.learn("a", { kind: "connections-answer" });
  assert.equal([told, backends.factsOf("a").state], [[true, false], "suspect"]);
});

test("what has no PING is kept while no backend answers, for the time that is given to all, and no longer (D14)", () => {
  const clock = manualClock();
  const backends = new Backends(["a", "b"], {
    clock,
    journal: new Journal(clock),
    rules,
    deadAfterWhenAllSilentMs: 10_000,
    onAnswer() {
      answered += 1;
    },
  });
  const heard: string[] = [];
  let answered = 0;
  const fresh = (met: "answer" | "refusal" | "silence") =>
    ({ kind: "fresh", met, begunAt: clock.now(), ms: 1000, reason: met }) as const;
  for (const name of ["a", "b"]) {
    backends.learn(name, opened);
    backends.onLost(name, () => heard.push(name));
  }
  clock.advance(1000);
  backends.learn("a", silent);
  assert.not(backends.areAllSilent);
  backends.learn("b", lost);
  assert.ok(backends.areAllSilent, "one says nothing, the other is gone");
  backends.learn("a", lost);
  clock.advance(1);
  backends.learn("a", fresh("silence"));
  backends.learn("b", fresh("refusal"));
  assert.ok(backends.areAllSilent);
  clock.advance(9_998);
  backends.learn("a", fresh("silence"));
  assert.equal(heard, []);
  clock.advance(1);
  assert.not(backends.areAllSilent);
  backends.learn("a", fresh("silence"));
  assert.equal([heard, answered], [["a"], 0]);
  backends.learn("b", fresh("answer"));
  assert.equal([backends.silentUntil, answered], [0, 1]);
});

test("a socket that met silence and that another has overtaken is not told of", () => {
  const clock = manualClock();
  const journal = new Journal(clock);
  const backends = new Backends(["a"], { clock, journal, rules });
  const met: string[] = [];
  journal.subscribe((entry) => entry.kind === "backend.probed" && met.push(entry.met));
  const fresh = (what: "answer" | "silence", begunAt: number) =>
    ({ kind: "fresh", met: what, begunAt, ms: clock.now() - begunAt, reason: what }) as const;
  backends.learn("a", opened);
  backends.learn("a", silent);
  clock.advance(1000);
  backends.learn("a", fresh("silence", 1));
  clock.advance(900);
  backends.learn("a", fresh("answer", 1100));
  backends.learn("a", fresh("silence", 1200));
  assert.equal(met, ["silence", "answer"]);
  clock.advance(2000);
  backends.learn("a", fresh("silence", 2900));
  assert.equal(met, ["silence", "answer", "silence"]);
});

test("a stall of the proxy is no part of a silence of all, nor of how long a backend has been in its state (F11)", () => {
  const clock = manualClock();
  const patience = new StallAwareClock(clock);
  patience.start();
  const backends = new Backends(["a"], {
    clock,
    stallAwareClock: patience,
    journal: new Journal(clock),
    rules,
    deadAfterWhenAllSilentMs: 10_000,
  });
  backends.learn("a", opened);
  clock.advance(1000);
  backends.learn("a", silent);
  clock.advance(3000);
  clock.stall(8000);
  clock.advance(10);
  assert.ok(backends.areAllSilent);
  assert.ok(backends.stateMs("a") < 4000, String(backends.stateMs("a")));
  clock.advance(7500);
  assert.not(backends.areAllSilent);
});

test("backends without connections are silent as well when their probes are, if they were answered before", () => {
  const clock = manualClock();
  const parts = { clock, journal: new Journal(clock), rules, deadAfterWhenAllSilentMs: 10_000 };
  const backends = new Backends(["a", "b"], parts);
  const fresh = (met: "answer" | "refusal" | "silence") =>
    ({ kind: "fresh", met, begunAt: clock.now(), ms: 1000, reason: met }) as const;
  backends.learn("a", fresh("silence"));
  assert.not(backends.areAllSilent, "none was ever reached");
  clock.advance(1000);
  backends.learn("a", fresh("answer"));
  clock.advance(1000);
  backends.reconcile(["a", "c"]);
  backends.learn("a", fresh("silence"));
  assert.ok(backends.areAllSilent);
  clock.advance(1000);
  backends.learn("a", fresh("answer"));
  assert.equal([backends.areAllSilent, backends.silenceOverAt], [false, clock.now()]);
  clock.advance(1000);
  backends.learn("a", fresh("refusal"));
  assert.not(backends.areAllSilent);
});

test("a backend without connections that answered before the others fell silent is silent with them", () => {
  const clock = manualClock();
  const parts = { clock, journal: new Journal(clock), rules, deadAfterWhenAllSilentMs: 10_000 };
  const backends = new Backends(["a", "unused"], parts);
  const fresh = (met: "answer" | "silence") =>
    ({ kind: "fresh", met, begunAt: clock.now(), ms: 1, reason: met }) as const;
  backends.learn("a", opened);
  backends.learn("unused", fresh("answer"));
  clock.advance(1000);
  backends.learn("a", silent);
  backends.learn("a", fresh("silence"));
  assert.ok(backends.areAllSilent);
  clock.advance(1000);
  backends.learn("unused", fresh("answer"));
  assert.equal([backends.areAllSilent, backends.silenceOverAt], [false, clock.now()]);
});

test("where all refuse, or none was ever reached, nothing is silent", () => {
  const clock = manualClock();
  const backends = new Backends(["a"], {
    clock,
    journal: new Journal(clock),
    rules,
    deadAfterWhenAllSilentMs: 10_000,
  });
  backends.learn("a", { kind: "fresh", met: "silence", begunAt: 0, ms: 1000, reason: "" });
  assert.not(backends.areAllSilent);
  clock.advance(10);
  for (const evidence of [opened, lost]) backends.learn("a", evidence);
  clock.advance(10);
  backends.learn("a", { kind: "fresh", met: "refusal", begunAt: clock.now(), ms: 1, reason: "" });
  assert.not(backends.areAllSilent);
});

test("a backend that said goodbye on its only session is no silence, though no other was ever reached (D14)", () => {
  const clock = manualClock();
  const backends = new Backends(["a", "b"], {
    clock,
    journal: new Journal(clock),
    deadAfterWhenAllSilentMs: 10_000,
  });
  backends.learn("a", opened);
  backends.learn("a", { kind: "connections-going" });
  backends.learn("a", { kind: "connections-lost", by: "socket", reason: "it ended" });
  assert.not(backends.areAllSilent);
});

test("a process that does not judge reports its evidence, and takes the verdict", () => {
  const clock = manualClock();
  const judge = new Backends(["a"], { clock, journal: new Journal(clock), rules });
  const reported: string[] = [];
  const here = new Backends(["a"], {
    clock,
    journal: new Journal(clock),
    rules,
    report: (name, { kind }) => reported.push(`${name} ${kind}`),
  });
  here.learn("a", opened);
  assert.equal(reported, ["a connection-opened"]);
  assert.is(here.stateOf("a"), "unknown", "it has no verdict of its own");
  judge.learn("a", opened);
  here.adopt("a", judge.factsOf("a"), opened);
  assert.is(here.stateOf("a"), "ready");
});

test("a process's own silent connections make a backend suspect there at once, and only there", () => {
  const clock = manualClock();
  const judged: string[] = [];
  const judge = new Backends(["a", "b"], { clock, journal: new Journal(clock), rules });
  for (const name of ["a", "b"]) judge.learn(name, opened);
  const here = new Backends(["a", "b"], {
    clock,
    journal: new Journal(clock),
    rules,
    report: () => {},
    onVerdict: ({ name, state }) => judged.push(`${name} ${state}`),
    onNeed: (name, isNeeded) => judged.push(`${name} ${isNeeded ? "needs another" : "needs none"}`),
  });
  for (const name of ["a", "b"]) {
    here.learn(name, opened);
    here.adopt(name, judge.factsOf(name), opened);
  }
  judged.length = 0;
  here.learn("a", silent);
  assert.equal(judged, ["a suspect", "a needs another"]);
  assert.is(judge.stateOf("a"), "ready");
  // A verdict that the other process reached for another reason does not hide this process's own suspicion.
  here.adopt("a", judge.factsOf("a"), { kind: "reads-answer" });
  assert.is(here.stateOf("a"), "suspect");
  here.learn("a", answers);
  assert.is(here.stateOf("a"), "ready");
  here.learn("a", lost);
  here.unconnected("a");
  here.adopt("a", judge.factsOf("a"), { kind: "reads-answer" });
  assert.is(here.stateOf("a"), "ready", "no connection is no evidence");
});

test("the facts after each piece of evidence are told, also those of a backend that is raised", () => {
  const clock = manualClock();
  const told: string[] = [];
  const backends = new Backends(["a"], {
    clock,
    journal: new Journal(clock),
    rules,
    onFacts: (name, { state }, { kind }) => told.push(`${name} ${state} ${kind}`),
  });
  backends.learn("a", opened);
  backends.learn("a", silent);
  backends.learn("a", answers);
  assert.equal(told, [
    "a ready connection-opened",
    "a suspect connections-silent",
    "a suspect connections-answer",
    "a ready alone",
  ]);
});

test.run();
