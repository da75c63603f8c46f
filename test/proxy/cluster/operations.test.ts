import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../../src/base/failure.ts";
import { Operations, type ReloadOutcome } from "../../../src/proxy/cluster/operations.ts";
import { watchLimits } from "../../../src/watch/limits.ts";
import { bearer, PlayedPath } from "../../support/path.ts";
import { ok, PlayedWatch } from "../../support/watch-path.ts";

const test = suite("proxy/cluster/operations");
const alice = { by: "alice at 127.0.0.1", reason: "kernel update" };

function operationsOf(path: PlayedPath, reload?: () => Promise<ReloadOutcome>): Operations {
  return new Operations({ journal: path.journal, paths: () => [path], limits: path.operatorLimits, reload });
}

function stateOf(path: PlayedPath, name: string): string {
  return path.backends.views.find((view) => view.name === name)?.state ?? "";
}

function refusal(outcome: string | Failure): string {
  return outcome instanceof Failure ? outcome.message : `done: ${outcome}`;
}

test("a drained backend gets nothing new, its watches move unseen, and what cannot be moved stays", () => {
  const path = new PlayedPath(["a", "b"]);
  const watch = new PlayedWatch({ path });
  const { from, to, client, ear } = watch;
  watch.serve(from, "+8a");
  const name = path.backend("a") === from ? "a" : "b";
  const log = client.ask("GET", "/api/v1/namespaces/n/pods/p/log?follow=true", [bearer("t")]);
  path.settle();
  const logged = from.last;
  logged.side?.sendHeaders(ok, false);
  logged.say("one line");
  assert.is(
    operationsOf(path).drain(name, alice),
    `${name} is draining: no new requests; its watches move gradually`,
  );
  assert.is(stateOf(path, name), "draining");
  path.clock.advance(2000);
  watch.serve(to, "+9b =10");
  path.settle();
  assert.equal([...path.migrations.moves], [["draining", 1]]);
  assert.match(ear.body, /"resourceVersion":"8"[^]*"resourceVersion":"9"/);
  assert.not.ok(ear.isEnded);
  const before = from.asked.length;
  client.ask("GET", "/api/v1/pods", [bearer("t")]);
  path.settle();
  path.clock.advance(60_000);
  assert.is(from.asked.length, before, "new requests go elsewhere");
  logged.say(", and another");
  path.settle();
  assert.is(log.body, "one line, and another");
});

test("it stays so whatever the backend says of itself, and is ready as soon as it is undone", () => {
  const path = new PlayedPath(["a", "b"], { isProbed: true });
  path.clock.advance(3000);
  const operations = operationsOf(path);
  operations.drain("a", alice);
  path.clock.advance(30_000);
  assert.equal([stateOf(path, "a"), path.measurementsOf("a").isDrained], ["draining", true]);
  path.backend("a").kill();
  path.clock.advance(3000);
  assert.is(stateOf(path, "a"), "dead", "a drained one that dies is told dead");
  path.backend("a").isDown = false;
  path.clock.advance(30_000);
  assert.is(stateOf(path, "a"), "draining", "back from its restart it waits for the operator");
  assert.is(operations.undrain("a", alice), "a is no longer drained: it is ready");
  assert.equal([stateOf(path, "a"), path.measurementsOf("a").isDrained], ["ready", false]);
});

test("the last ready backend is not let go, and what is done already is said to be", () => {
  const path = new PlayedPath(["a", "b"]);
  const operations = operationsOf(path);
  path.clock.advance(100);
  assert.type(operations.drain("a", alice), "string");
  assert.is(operations.drain("a", alice), "a was drained already");
  assert.match(refusal(operations.drain("b", alice)), "Cannot drain b: no other backend is ready");
  assert.is(stateOf(path, "b"), "ready");
  assert.is(operations.undrain("b", alice), "b was not drained");
  assert.match(refusal(operations.drain("c", alice)), 'There is no backend "c": there is a, b');
  assert.match(refusal(operations.undrain("c", alice)), 'There is no backend "c": there is a, b');
});

test("one watch is moved by its audit id, and goes on from its next event", async () => {
  const path = new PlayedPath(["a", "b"]);
  const watch = new PlayedWatch({ path });
  watch.serve(watch.from, "+8a =9");
  const auditId = path.exchanges.live[0]?.context.auditId ?? "";
  assert.match(refusal(await operationsOf(path).move("unknown", alice)), "Watch not found");
  assert.match(refusal(await operationsOf(path).move(auditId, alice)), "1 of 1 watches move");
  path.clock.advance(watchLimits.leavePauseMs * 4);
  watch.serve(watch.to, "+10b");
  assert.equal([...path.migrations.moves], [["operator", 1]]);
  assert.not.ok(watch.ear.isEnded);
  assert.match(watch.ear.body, '"resourceVersion":"10"');
});

test("a watch that has shown no version yet is not moved, and it is said why", async () => {
  const path = new PlayedPath(["a", "b"]);
  const watch = new PlayedWatch({ path, query: "resourceVersion=0" });
  watch.serve(watch.from, "");
  const auditId = path.exchanges.live[0]?.context.auditId ?? "";
  assert.match(refusal(await operationsOf(path).move(auditId, alice)), "Cannot move the watch now");
});

test("the configuration is read again, or its problems are told; without a file there is none", async () => {
  const path = new PlayedPath(["a"]);
  const reloaded = async (problems: readonly string[], waiting: readonly string[] = []): Promise<string> =>
    refusal(await operationsOf(path, () => Promise.resolve({ problems, waiting })).reload(alice));
  assert.is(await reloaded([]), "done: Configuration reloaded");
  const late = await reloaded([], ["admin", "clusters.default.connectionPool"]);
  assert.is(
    late,
    "done: Configuration reloaded; admin, clusters.default.connectionPool effective after a restart",
  );
  assert.is(await reloaded(["a.yaml:3:1 is wrong", "and more"]), "a.yaml:3:1 is wrong; and more");
  assert.match(refusal(await operationsOf(path).reload(alice)), "No configuration file");
});

test("the journal has who did what, and whose operation was refused", () => {
  const path = new PlayedPath(["a", "b"]);
  const operations = operationsOf(path);
  operations.drain("a", alice);
  operations.drain("b", alice);
  const told = path.entries.filter(({ kind }) => kind.startsWith("operation."));
  assert.equal(told, [
    {
      kind: "operation.done",
      operation: "drain",
      target: "a",
      ...alice,
      outcome: "a is draining: no new requests; its watches move gradually",
    },
    {
      kind: "operation.refused",
      operation: "drain",
      target: "b",
      by: alice.by,
      reason: "Cannot drain b: no other backend is ready",
    },
  ]);
  const changed = path.entries.find((entry) => entry.kind === "backend.changed" && entry.to === "draining");
  assert.equal(changed?.kind === "backend.changed" && [changed.detector, changed.reason], [
    "operator",
    "drained by alice at 127.0.0.1",
  ]);
});

test("a backend of one cluster is let go only for another of its own, whatever other clusters have", () => {
  const [eu, us] = [new PlayedPath(["eu/a"]), new PlayedPath(["us/a", "us/b"])];
  const operations = new Operations({
    journal: eu.journal,
    paths: () => [eu, us],
    limits: eu.operatorLimits,
    reload: undefined,
  });
  assert.is(refusal(operations.drain("eu/a", alice)), "Cannot drain eu/a: no other backend is ready");
  assert.match(refusal(operations.drain("us/a", alice)), "done: us/a is draining");
  assert.equal([stateOf(eu, "eu/a"), stateOf(us, "us/a")], ["ready", "draining"]);
  assert.match(refusal(operations.undrain("us/a", alice)), "done: us/a is no longer drained");
  assert.is(refusal(operations.drain("a", alice)), 'There is no backend "a": there is eu/a, us/a, us/b');
});

test.run();
