import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Journal } from "../../../src/events/journal.ts";
import { ExpiryWatch, levelOf, thresholdOf } from "../../../src/ops/incidents/certificate-expiry.ts";
import { incidentLimits } from "../../../src/ops/incidents/limits.ts";
import { manualClock } from "../../support/clock.ts";

const test = suite("ops/incidents/certificate-expiry");
const day = 86_400_000;

function scene(...days: readonly number[]) {
  const clock = manualClock();
  const journal = new Journal(clock);
  const told: string[] = [];
  journal.subscribe((entry) => {
    if (entry.kind === "certificate.expiring")
      told.push(`${entry.purpose} ${entry.name} ${entry.limitMs / day}`);
    if (entry.kind === "certificate.renewed") told.push(`${entry.name} renewed`);
  });
  const state = {
    certificates: days.map((left, index) => ({
      purpose: index === 0 ? "serving" : "backend-loopback",
      name: `c-${index}`,
      notAfterMs: clock.wall() + left * day,
    })),
  };
  const watch = new ExpiryWatch({ clock, journal, certificates: () => state.certificates });
  watch.start();
  return { clock, told, state, watch };
}

test("each threshold is told once, as soon as it is passed, and a loopback certificate's a month before", () => {
  const { clock, told } = scene(8, 29);
  clock.advance(incidentLimits.expiryLookMs);
  assert.equal(told, ["backend-loopback c-1 30"]);
  for (let hours = 0; hours < 9 * 24; hours += 6) clock.advance(day / 4);
  assert.equal(told.slice(1), ["serving c-0 7", "serving c-0 1", "serving c-0 0"]);
});

test("one that is replaced, or used no more, is told as renewed; a new one that ends soon is told anew", () => {
  const { clock, told, state } = scene(3, 3);
  clock.advance(incidentLimits.expiryLookMs);
  const [first] = state.certificates;
  state.certificates = first === undefined ? [] : [{ ...first, notAfterMs: first.notAfterMs + day }];
  clock.advance(incidentLimits.expiryLookMs);
  assert.equal(told.slice(2), ["c-0 renewed", "serving c-0 7", "c-1 renewed"]);
});

test("stopped, it looks no more", () => {
  const { clock, told, watch } = scene(3);
  watch.stop();
  clock.advance(day);
  assert.equal(told, []);
});

test("a week before its end a certificate is told of, a loopback certificate a month; then the last day", () => {
  const levels = [31, 30, 8, 7, 2, 1, 0].map((days) => [
    levelOf(days * day, "serving"),
    levelOf(days * day, "backend-loopback"),
  ]);
  assert.equal(levels, [
    ["ok", "ok"],
    ["ok", "soon"],
    ["ok", "soon"],
    ["soon", "soon"],
    ["soon", "soon"],
    ["now", "now"],
    ["over", "over"],
  ]);
});

test("each level has the threshold that was passed", () => {
  assert.equal(
    [
      thresholdOf("soon", "serving"),
      thresholdOf("soon", "backend-loopback"),
      thresholdOf("now", "x"),
      thresholdOf("over", "x"),
    ],
    [7 * day, 30 * day, day, 0],
  );
});

test.run();
