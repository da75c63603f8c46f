import { suite } from "uvu";
import * as assert from "uvu/assert";
import { levelOf, thresholdOf } from "../../src/incidents/certificate-expiry.ts";

const test = suite("expiry");
const day = 86_400_000;

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
