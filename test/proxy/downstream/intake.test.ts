import { suite } from "uvu";
import * as assert from "uvu/assert";
import { connectionShare, Intake, intakeCalmMs, mostSockets } from "../../../src/proxy/downstream/intake.ts";
import { type ManualClock, manualClock } from "../../support/clock.ts";

const test = suite("proxy/downstream/intake");

type Scene = { readonly clock: ManualClock; readonly intake: Intake; isShort: boolean };

function scene(most: number): Scene {
  const made = {
    clock: manualClock(),
    isShort: false,
  };
  const { clock } = made;
  return Object.assign(made, { intake: new Intake({ clock, most, isShort: () => made.isShort }) });
}

test("so many are let in, one more when one has left (A24)", () => {
  const { intake } = scene(2);
  const [first, second] = [intake.enter(), intake.enter()];
  assert.ok(first && second);
  assert.is(intake.enter(), undefined);
  first();
  assert.ok(intake.enter());
  assert.is(intake.enter(), undefined);
});

test("it complains before the first is refused, until there is room to spare and none was refused for ten seconds", () => {
  const { intake, clock } = scene(100);
  const leave = Array.from({ length: 99 }, () => intake.enter());
  assert.is(intake.complaint, "");
  leave.push(intake.enter());
  assert.is(intake.complaint, "100 of 100 connections, or some were refused lately");
  for (const one of leave.splice(0, 9)) one?.();
  clock.advance(intakeCalmMs);
  assert.match(intake.complaint, "91 of 100");
  for (const one of leave.splice(0, 2)) one?.();
  assert.is(intake.complaint, "");
  // At the limit again. 50 free places do not clear the complaint before `intakeCalmMs` have passed.
  leave.push(...Array.from({ length: 12 }, () => intake.enter()));
  assert.match(intake.complaint, "100 of 100");
  for (const one of leave.splice(0, 50)) one?.();
  clock.advance(intakeCalmMs - 1);
  assert.match(intake.complaint, "50 of 100");
  clock.advance(1);
  assert.is(intake.complaint, "");
});

test("short memory lets no client in, and is a complaint for ten seconds longer (A26)", () => {
  const made = scene(10);
  made.isShort = true;
  assert.is(made.intake.enter(), undefined);
  assert.is(made.intake.complaint, "memory is short");
  made.isShort = false;
  assert.ok(made.intake.enter());
  assert.match(made.intake.complaint, "1 of 10");
  made.clock.advance(intakeCalmMs);
  assert.is(made.intake.complaint, "");
});

test("clients may have a share of this process' descriptors", () => {
  assert.ok(mostSockets() >= Math.floor(64 * connectionShare));
});

test.run();
