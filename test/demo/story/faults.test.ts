/** Tests how the demo's story injects and reports faults, on a manual clock with scripted apiservers and clients. */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { Embedded, FaultKind } from "../../../demo/apiserver/embedded.ts";
import { Faults } from "../../../demo/story/faults.ts";
import type { Seen, SteadyClient } from "../../../demo/story/steady-client.ts";
import { Failure } from "../../../src/base/failure.ts";
import { Journal } from "../../../src/events/journal.ts";
import { manualClock } from "../../support/clock.ts";

const test = suite("demo/story/faults");

const well: Seen = {
  gets: 60,
  failedGets: 0,
  slowestGetMs: 512,
  watches: 4,
  ends: 0,
  relists: 0,
  hung: 0,
  latestEventMs: 640,
  wrongEvents: 0,
};
const ill: Seen = { ...well, failedGets: 11, slowestGetMs: 3_000, hung: 2, latestEventMs: 3_950 };

function scene(seen: Seen = well) {
  const clock = manualClock();
  const journal = new Journal(clock);
  const said: string[] = [];
  const struck: string[] = [];
  const changed = (backend: string, to: string, reason: string): void =>
    journal.write({
      kind: "backend.changed",
      backend,
      from: "",
      to,
      detector: "ping",
      valueMs: 0,
      limitMs: 0,
      reason,
    });
  const apiserver = (name: string, watchCount: number): Embedded => {
    const one = {
      name,
      watchCount,
      strike(fault: FaultKind) {
        struck.push(`${name} ${fault}`);
        clock.after(500, () => changed(name, "suspect", "PING unanswered for 500 ms"));
        return Promise.resolve();
      },
      heal(fault: FaultKind) {
        struck.push(`${name} healed of ${fault}`);
        clock.after(800, () => changed(name, "ready", "/readyz: ok"));
        return Promise.resolve(undefined);
      },
    };
    return one as unknown as Embedded;
  };
  const client = (what: Seen): SteadyClient => {
    const one = { waiting: 0, start: () => Promise.resolve(), reset() {}, seen: () => what };
    return one as unknown as SteadyClient;
  };
  const faults = new Faults({
    apiservers: [apiserver("apiserver-1", 2), apiserver("apiserver-2", 6)],
    journal,
    clients: { watchkeeper: client(seen), naive: client(ill) },
    clock,
    say: (line) => said.push(line),
    faultMs: 2_000,
  });
  /** Advances the clock until the promise settles, at most by 60 s. */
  const played = async <T>(work: Promise<T>): Promise<T> => {
    const state = { isDone: false };
    const done = work.finally(() => (state.isDone = true));
    for (let step = 0; step < 3_000 && !state.isDone; step += 1) {
      clock.advance(20);
      await new Promise((resolve) => setImmediate(resolve));
    }
    return done;
  };
  return { faults, played, said, struck };
}

test("each fault strikes the backend that serves most, is healed, and is reported with what was measured", async () => {
  const { faults, played, said, struck } = scene();
  assert.is(await played(faults.play(["hole", "freeze"])), undefined);
  assert.equal(struck, [
    "apiserver-2 hole",
    "apiserver-2 healed of hole",
    "apiserver-2 freeze",
    "apiserver-2 healed of freeze",
  ]);
  assert.match(said[1] ?? "", /^ {3}0\.00 s {2}apiserver-2 {2}falls into a black hole/);
  assert.is(said[2], "   0.50 s  watchkeeper  apiserver-2 is suspect: PING unanswered for 500 ms");
  const rows = said.filter((line) => line.includes("  through "));
  assert.match(rows[0] ?? "", /watchkeeper +0 of 60 +0\.51 s +0 of 4 +0\.64 s +0 +0 +0$/);
  assert.match(rows[1] ?? "", /naive proxy +11 of 60 +3\.00 s +2 of 4 +3\.95 s +0 +0 +0$/);
  assert.is(rows.length, 4);
});

test("what a client of watchkeeper had to feel is a failure, told when all is played", async () => {
  const { faults, played, struck } = scene({ ...well, failedGets: 1 });
  assert.instance(await played(faults.play(["hole", "freeze"])), Failure);
  assert.is(struck.length, 4);
});

test("ended in mid-fault it heals what it struck and says no more", async () => {
  const { faults, played, said, struck } = scene();
  const play = faults.play(["freeze"]);
  await played(new Promise<void>((resolve) => setTimeout(resolve, 50)));
  while (struck.length === 0) await played(Promise.resolve());
  const before = said.length;
  faults.end();
  assert.is(await played(play), undefined);
  assert.equal(struck, ["apiserver-2 freeze", "apiserver-2 healed of freeze"]);
  assert.is(said.length, before);
});

test.run();
