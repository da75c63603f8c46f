/** The whole path under a thousand seeds. One that fails is played alone by test/simulation/run.ts --seed N. */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { figure } from "../support/figure.ts";
import { astray, payload } from "./payload.ts";
import { playAll, summaryOf } from "./play-all.ts";
import { play } from "./scene.ts";

const test = suite("simulation/path");

/** Seeds that once failed, with what they taught. */
const lessons: readonly (readonly [seed: number, lesson: string])[] = [];

for (const [seed, lesson] of lessons) {
  test(`${lesson} (seed ${seed})`, () => assert.is(play(seed).problems.join("\n"), ""));
}

test("a byte that is not its own is counted, wherever it comes from", () => {
  const body = { tag: 7, of: "answer" } as const;
  const bytes = Buffer.from(payload(body, 3, 103));
  const all: [number, number] = [0, 100];
  assert.is(astray(body, 3, bytes, all), 0);
  assert.ok(astray({ tag: 8, of: "answer" }, 3, bytes, all) > 90);
  assert.ok(astray({ tag: 7, of: "request" }, 3, bytes, all) > 90);
  assert.ok(astray(body, 4, bytes, all) > 90);
  bytes.writeUInt8(bytes.readUInt8(50) ^ 1, 50);
  assert.is(astray(body, 3, bytes, all), 1);
});

test("a seed is the whole run", () => {
  assert.equal(play(1), play(1));
});

test("in a thousand runs, calm and stormy, nothing is astray, cut short, lost, out of order or left open", () => {
  const told: string[] = [];
  const sum = playAll(1, 1_000, {
    failed: ({ seed, problems }) => told.push(`seed ${seed}: ${problems.join("; ")}`),
  });
  figure(summaryOf(sum));
  assert.equal(told, []);
  assert.is(sum.astray, 0);
  assert.ok(sum.decisions > 1_000_000);
});

test.run();
