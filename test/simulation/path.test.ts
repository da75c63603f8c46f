/** The whole data path with a few seeds. `npm run test:seeds` plays a thousand. */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { astray, payload } from "./payload.ts";
import { playAll } from "./play-all.ts";
import { play } from "./scene.ts";

const test = suite("simulation/path");

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

test("in a hundred runs nothing is astray, cut short, lost, out of order or left open", () => {
  const told: string[] = [];
  const sum = playAll(1, 100, {
    failed: ({ seed, problems }) => told.push(`seed ${seed}: ${problems.join("; ")}`),
  });
  assert.equal(told, []);
  assert.is(sum.astray, 0);
  assert.ok(sum.decisions > 100_000);
});

test.run();
