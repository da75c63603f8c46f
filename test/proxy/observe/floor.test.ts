import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import { Floor, Floors } from "../../../src/proxy/observe/floor.ts";

const test = suite("proxy/observe/floor");
const one = { isOpen: true };

test("a floor rises and never sinks", () => {
  const floor = new Floor("a", "/pods");
  for (const version of ["9", "10", "7", ""]) floor.raise(version, one);
  assert.is(floor.version, "10");
});

test("connections that follow one another are one client; those that are open together are told apart", () => {
  const floor = new Floor("a", "/pods");
  const [first, second, third, fourth] = [true, true, true, true].map((isOpen) => ({ isOpen }));
  if (!first || !second || !third || !fourth) throw new Error("There are four");
  floor.meet(first);
  floor.raise("9", first);
  first.isOpen = false;
  floor.meet(second);
  assert.is(floor.seenBy(second), "9");
  floor.raise("10", second);
  floor.meet(third);
  floor.raise("12", third);
  floor.raise("11", second);
  assert.equal(
    [second, third].map((each) => floor.seenBy(each)),
    ["11", "12"],
  );
  second.isOpen = false;
  third.isOpen = false;
  floor.meet(fourth);
  assert.equal([floor.seenBy(fourth), floor.version], ["", "12"]);
});

test("after three refusals in a row it is given up", () => {
  const floor = new Floor("a", "/pods");
  floor.raise("10", one);
  const refused = Array.from({ length: limits.floorRefusals }, () => floor.refused());
  assert.equal(refused, [false, false, true]);
  assert.is(floor.version, "");
});

test("a client that comes again finds what it had seen, of this resource only, and as whom it came", () => {
  const floors = new Floors();
  floors.of("a", "me", "/pods").raise("7", one);
  const seen = (["me", "you"] as const).map((who) => floors.of("a", who, "/pods").version);
  assert.equal([...seen, floors.of("a", "me", "/nodes").version], ["7", "", ""]);
});

test("who has asked least lately is forgotten first", () => {
  const floors = new Floors();
  const [first, second] = [floors.of("a", "", "/pods"), floors.of("b", "", "/pods")];
  for (let index = 2; index < limits.floors; index += 1) floors.of(String(index), "", "/pods");
  assert.ok(floors.of("a", "", "/pods") === first);
  floors.of("c", "", "/pods");
  assert.ok(floors.of("a", "", "/pods") === first);
  assert.ok(floors.of("b", "", "/pods") !== second);
  assert.is(floors.size, limits.floors);
});

test.run();
