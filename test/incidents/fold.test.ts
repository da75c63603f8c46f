import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Fold } from "../../src/incidents/fold.ts";
import { IncidentStore } from "../../src/incidents/store.ts";
import { limits } from "../../src/limits.ts";
import { changed } from "../support/incidents.ts";

const test = suite("incidents/fold");

test("it says when it has something to do: a doubt that lasts, an incident that calms", () => {
  const store = new IncidentStore({ opened() {}, ended() {} });
  const fold = new Fold(store);
  assert.is(fold.dueAt, Number.POSITIVE_INFINITY);
  fold.take(changed("a", "ready", "suspect"), 100);
  assert.is(fold.dueAt, 100 + limits.unprovenMs);
  fold.take({ kind: "fault.contained", ring: "stream", message: "x" }, 200);
  fold.tick(100 + limits.unprovenMs);
  assert.equal(
    store.active.map(({ kind }) => kind),
    ["fault-contained", "backend-blackholed", "all-backends-down"],
  );
  assert.is(fold.dueAt, 200 + limits.quietMs);
  fold.tick(fold.dueAt);
  assert.is(fold.dueAt, Number.POSITIVE_INFINITY);
});

test("an answer from the past that comes again is an incident of its client", () => {
  const store = new IncidentStore({ opened() {}, ended() {} });
  const fold = new Fold(store);
  const outdated = {
    kind: "answer.outdated",
    client: "c",
    userAgent: "u",
    resource: "/pods",
    backend: "a",
    version: "1",
    seen: "2",
  } as const;
  fold.take(outdated, 0);
  fold.take(outdated, 60_000);
  assert.equal(
    store.active.map(({ kind, affected }) => [kind, affected.names]),
    [["version-went-back", ["c u"]]],
  );
});

test.run();
