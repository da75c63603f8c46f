import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type Entry, Journal } from "../../../../src/events/journal.ts";
import { adminLimits } from "../../../../src/ops/admin/http/limits.ts";
import type { Check, ProbeSource } from "../../../../src/ops/admin/server/answers.ts";
import { CachedProbes } from "../../../../src/ops/admin/server/cached-probes.ts";
import { manualClock } from "../../../support/clock.ts";
import { within } from "../../../support/within.ts";

const test = suite("ops/admin/server/cached-probes");

const well: readonly Check[] = [{ name: "ping", ok: true }];
const ill: readonly Check[] = [{ name: "ping", ok: false }];

/** Sets up cached probes in front of a main loop that answers only when the test tells it to. */
function scene(soon?: (run: () => void) => void) {
  const clock = manualClock();
  const journal = new Journal(clock);
  const told: Entry[] = [];
  journal.subscribe((entry) => told.push(entry));
  const owed: ((checks: readonly Check[]) => void)[] = [];
  const scrapes: ((text: string) => void)[] = [];
  const loop: ProbeSource = {
    checks: () => new Promise((resolve) => owed.push(resolve)),
    scrape: () => new Promise((resolve) => scrapes.push(resolve)),
  };
  const patient = new CachedProbes({
    clock: { ...clock, soon: soon ?? clock.soon },
    journal,
    loop,
    first: { livez: well, readyz: ill },
  });
  return { clock, told, owed, scrapes, patient };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("what the loop says in time is passed on", async () => {
  const { owed, patient } = scene();
  const asked = patient.checks("livez");
  owed[0]?.(ill);
  assert.equal(await asked, [
    { name: "ping", ok: false },
    { name: "loop", ok: true },
  ]);
});

test("a busy loop is passed over: what it said last is told, and it is well", async () => {
  const { clock, owed, patient } = scene();
  const first = patient.checks("readyz");
  clock.advance(adminLimits.probePatienceMs);
  assert.equal(await first, [...ill, { name: "loop", ok: true }]);
  owed[0]?.(well);
  await turn();
  const second = patient.checks("readyz");
  clock.advance(adminLimits.probePatienceMs);
  assert.equal(await second, [...well, { name: "loop", ok: true }]);
});

test("a loop that leaves a question unanswered for too long stands still, until it answers; the journal has both", async () => {
  const { clock, owed, told, patient } = scene();
  const first = patient.checks("livez");
  clock.advance(adminLimits.probePatienceMs);
  await first;
  clock.advance(adminLimits.standstillMs);
  assert.equal((await patient.checks("livez")).at(-1), { name: "loop", ok: false });
  const another = patient.checks("readyz");
  clock.advance(adminLimits.probePatienceMs);
  assert.equal((await another).at(-1), { name: "loop", ok: false });
  for (const answer of owed) answer(well);
  await turn();
  const after = patient.checks("livez");
  owed.at(-1)?.(well);
  assert.equal((await after).at(-1), { name: "loop", ok: true });
  const waited = adminLimits.probePatienceMs + adminLimits.standstillMs;
  assert.equal(told, [
    { kind: "probe.changed", probe: "loop", complaint: `loop: no answer for ${waited} ms` },
    { kind: "probe.changed", probe: "loop", complaint: "" },
  ]);
});

test("what the loop has said unasked is told while it is busy", async () => {
  const { clock, patient } = scene();
  patient.learn("livez", ill);
  const asked = patient.checks("livez");
  clock.advance(adminLimits.probePatienceMs);
  assert.equal((await asked)[0], ill[0]);
});

test("no probe waits for a loop that has kept one waiting already", async () => {
  const { clock, patient } = scene();
  const first = patient.checks("livez");
  clock.advance(adminLimits.probePatienceMs);
  await first;
  assert.equal((await patient.checks("livez"))[0], well[0]);
});

test("metrics that take their time are no reason for a restart", async () => {
  const { clock, owed, patient } = scene();
  patient.scrape().catch(() => {});
  clock.advance(adminLimits.standstillMs);
  const asked = patient.checks("livez");
  owed[0]?.(well);
  assert.equal((await asked).at(-1), { name: "loop", ok: true });
});

test("a process that was paused whole reads the loop's answer before it says that there is none", async () => {
  // Simulates the order of a turn of Node's event loop: first the timers that are due, then the messages that have
  // arrived, and then setImmediate.
  const { clock, owed, patient } = scene((run) => {
    owed[0]?.(ill);
    setImmediate(run);
  });
  const asked = patient.checks("livez");
  clock.stall(adminLimits.standstillMs);
  clock.advance(0);
  assert.equal(await within(20_000, "the answer", asked), [
    { name: "ping", ok: false },
    { name: "loop", ok: true },
  ]);
});

test("a thousand probes of a loop that stands still are one question to it", async () => {
  const { clock, owed, patient } = scene();
  const asked = Array.from({ length: 1000 }, () => patient.checks("livez"));
  clock.advance(adminLimits.probePatienceMs);
  await Promise.all(asked);
  assert.is(owed.length, 1);
});

test("a loop that was asked nothing for an hour has answered all that it was asked", async () => {
  const { clock, owed, patient } = scene();
  clock.advance(3_600_000);
  const asked = patient.checks("livez");
  owed[0]?.(well);
  assert.equal((await asked).at(-1), { name: "loop", ok: true });
});

test("metrics are waited for longer, and then given up", async () => {
  const { clock, scrapes, patient } = scene();
  const taken = patient.scrape();
  clock.advance(adminLimits.adminRequestMs - 1);
  scrapes[0]?.("a 1");
  assert.is(await taken, "a 1");
  const lost = patient.scrape();
  clock.advance(adminLimits.adminRequestMs);
  assert.match(
    await lost.then(
      () => "",
      (error: Error) => error.message,
    ),
    "has not answered within",
  );
});

test.run();
