import { suite } from "uvu";
import * as assert from "uvu/assert";
import { ConnectionStates } from "../../src/health/connection-states.ts";
import type { Evidence } from "../../src/health/evidence.ts";

const test = suite("health/connection-states");
const opened: Evidence = { kind: "connection-opened", ms: 1 };
const answers: Evidence = { kind: "connections-answer" };
const silent: Evidence = { kind: "connections-silent", ms: 600, limitMs: 500 };
const lost: Evidence = { kind: "connections-lost", by: "socket", reason: "reset" };
const going: Evidence = { kind: "connections-going" };

test("a backend is silent only once no process has an answering connection", () => {
  const states = new ConnectionStates();
  assert.is(states.learn(0, "a", opened), opened);
  assert.is(states.learn(1, "a", opened), opened);
  assert.is(states.learn(1, "a", silent), undefined);
  assert.is(states.learn(0, "a", silent), silent);
  assert.is(states.learn(1, "a", answers), answers);
});

test("one backend's states are not another's", () => {
  const states = new ConnectionStates();
  states.learn(0, "a", opened);
  assert.is(states.learn(1, "b", lost), lost);
});

test("lost connections of one process are no news while another's are silent or got a GOAWAY", () => {
  const states = new ConnectionStates();
  states.learn(1, "a", silent);
  assert.is(states.learn(2, "a", lost), undefined);
  states.learn(1, "a", going);
  assert.is(states.learn(2, "a", silent), undefined);
  const worse = states.learn(1, "a", lost);
  assert.is(worse?.kind, "connections-silent", "the other process's silent connection is the best now");
  assert.is(
    states.learn(2, "a", lost)?.kind,
    "connections-lost",
    "the best state was silent, and is left now",
  );
});

test("a process's worse connection hides no loss from the others: the best state before and after counts", () => {
  const states = new ConnectionStates();
  states.learn(0, "a", opened);
  states.learn(1, "a", opened);
  states.learn(2, "a", opened);
  assert.is(states.learn(2, "a", silent), undefined);
  assert.is(states.learn(1, "a", lost), undefined);
  assert.equal(states.learn(0, "a", lost), { kind: "connections-silent", ms: 0, limitMs: 0 });
  assert.is(states.learn(0, "a", lost), undefined, "it is told once");
  assert.is(states.learn(2, "a", lost), lost);
});

test("evidence that is not about connections passes", () => {
  const states = new ConnectionStates();
  states.learn(0, "a", opened);
  const fresh: Evidence = { kind: "fresh", met: "silence", begunAt: 0, ms: 1, reason: "" };
  assert.is(states.learn(1, "a", fresh), fresh);
});

test("the end of the process with the only answering connection shows that the others are silent", () => {
  const states = new ConnectionStates();
  states.learn(1, "a", opened);
  states.learn(2, "a", silent);
  assert.equal(states.ended(1), [["a", { kind: "connections-silent", ms: 0, limitMs: 0 }]]);
  assert.equal(states.ended(2), [], "the end of the last process says nothing about the backend");
  assert.is(states.learn(3, "a", lost), lost);
});

test("a process that has closed its connections itself hides no other's silence", () => {
  const states = new ConnectionStates();
  states.learn(0, "a", opened);
  states.learn(1, "a", opened);
  assert.is(states.unconnected(0, "a"), undefined);
  assert.is(states.unconnected(0, "a"), undefined);
  assert.is(states.learn(1, "a", silent), silent);
});

test("a removed backend is forgotten", () => {
  const states = new ConnectionStates();
  states.learn(0, "a", opened);
  states.reconcile(["b"]);
  assert.is(states.learn(1, "a", lost), lost);
});

test.run();
