import { duplexPair } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Journal } from "../../../src/events/journal.ts";
import { type ServingWorker, WorkerLink } from "../../../src/fleet/workers/worker-link.ts";
import { noFacts } from "../../../src/health/backend.ts";
import { BackendVersions } from "../../../src/health/backend-versions.ts";
import { manualClock } from "../../support/clock.ts";

const test = suite("worker-link");

test("a worker, which probes no backend, takes a backend's version from the verdicts of its parent", async () => {
  const clock = manualClock();
  const versions = new BackendVersions(clock, new Journal(clock));
  const adopted: string[] = [];
  const path = { adopt: (backend: string) => void adopted.push(`${backend} ${versions.of(backend)}`) };
  const clusters = { limits: new Map(), ownerOf: () => ({ versions, path }) };
  const [parent, stream] = duplexPair();
  const link = new WorkerLink(clock, stream);
  link.attach({ clusters } as unknown as ServingWorker);
  const verdict = { kind: "verdict", backend: "a", facts: noFacts, evidence: { kind: "alone" } };
  for (const version of ["", "v1.38.1"]) {
    parent.write(`${JSON.stringify({ ...verdict, version })}\n`);
    await setImmediate();
  }
  assert.equal(adopted, ["a ", "a v1.38.1"]);
  link.stop();
});

test.run();
