import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import { SeenVersion, SeenVersions } from "../../../src/proxy/observe/seen-version.ts";

const test = suite("proxy/observe/floor");
const one = { isOpen: true };

test("a floor rises and never sinks", () => {
  const seenVersion = new SeenVersion("a", "/pods");
  for (const version of ["9", "10", "7", ""]) seenVersion.raise(version, one);
  assert.is(seenVersion.version, "10");
});

test("connections that follow one another are one client; those that are open together are told apart", () => {
  const seenVersion = new SeenVersion("a", "/pods");
  const [first, second, third, fourth] = [true, true, true, true].map((isOpen) => ({ isOpen }));
  if (!first || !second || !third || !fourth) throw new Error("There are four");
  seenVersion.meet(first);
  seenVersion.raise("9", first);
  first.isOpen = false;
  seenVersion.meet(second);
  assert.is(seenVersion.seenBy(second), "9");
  seenVersion.raise("10", second);
  seenVersion.meet(third);
  seenVersion.raise("12", third);
  seenVersion.raise("11", second);
  assert.equal(
    [second, third].map((each) => seenVersion.seenBy(each)),
    ["11", "12"],
  );
  second.isOpen = false;
  third.isOpen = false;
  seenVersion.meet(fourth);
  assert.equal([seenVersion.seenBy(fourth), seenVersion.version], ["", "12"]);
});

test("after three refusals in a row it is given up", () => {
  const seenVersion = new SeenVersion("a", "/pods");
  seenVersion.raise("10", one);
  const refused = Array.from({ length: limits.floorRefusals }, () => seenVersion.refused());
  assert.equal(refused, [false, false, true]);
  assert.is(seenVersion.version, "");
});

test("a client that comes again finds what it had seen, of this resource only, and as whom it came", () => {
  const seenVersions = new SeenVersions();
  seenVersions.of("a", "me", "/pods").raise("7", one);
  const seen = (["me", "you"] as const).map((who) => seenVersions.of("a", who, "/pods").version);
  assert.equal([...seen, seenVersions.of("a", "me", "/nodes").version], ["7", "", ""]);
});

test("who has asked least lately is forgotten first", () => {
  const seenVersions = new SeenVersions();
  const [first, second] = [seenVersions.of("a", "", "/pods"), seenVersions.of("b", "", "/pods")];
  for (let index = 2; index < limits.floors; index += 1) seenVersions.of(String(index), "", "/pods");
  assert.ok(seenVersions.of("a", "", "/pods") === first);
  seenVersions.of("c", "", "/pods");
  assert.ok(seenVersions.of("a", "", "/pods") === first);
  assert.ok(seenVersions.of("b", "", "/pods") !== second);
  assert.is(seenVersions.size, limits.floors);
});

test.run();
