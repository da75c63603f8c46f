import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../src/limits.ts";
import { Floor, Floors } from "../../src/watch/floor.ts";

const test = suite("watch/floor");

test("a floor rises and never sinks", () => {
  const floor = new Floor("a", "/pods");
  for (const version of ["9", "10", "7", ""]) floor.raise(version);
  assert.is(floor.version, "10");
});

test("after three refusals in a row it is given up", () => {
  const floor = new Floor("a", "/pods");
  floor.raise("10");
  const refused = Array.from({ length: limits.floorRefusals }, () => floor.refused());
  assert.equal(refused, [false, false, true]);
  assert.is(floor.version, "");
});

test("a client that comes again finds what it had seen, of this resource only", () => {
  const floors = new Floors();
  floors.of("a", "/pods").raise("7");
  assert.equal([floors.of("a", "/pods").version, floors.of("a", "/nodes").version], ["7", ""]);
});

test("who has asked least lately is forgotten first", () => {
  const floors = new Floors();
  const [first, second] = [floors.of("a", "/pods"), floors.of("b", "/pods")];
  for (let index = 2; index < limits.floors; index += 1) floors.of(String(index), "/pods");
  assert.ok(floors.of("a", "/pods") === first);
  floors.of("c", "/pods");
  assert.ok(floors.of("a", "/pods") === first);
  assert.ok(floors.of("b", "/pods") !== second);
  assert.is(floors.size, limits.floors);
});

test.run();
