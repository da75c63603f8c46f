import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import { Standings } from "../../../src/watch/progress/stale.ts";
import { isStalled, type Standing } from "../../../src/watch/progress/standing.ts";
import { bookmark, doubted, names, two } from "../../support/standings.ts";

const test = suite("watch/stale");

const second = 1000;

test("a backend that has not shown for eight seconds what another has is doubted", () => {
  const { standings, a, b } = two();
  b.show("7", 0);
  a.show("9", 0);
  assert.equal(names(standings, 0), []);
  assert.equal(names(standings, 7 * second), []);
  a.show("15", 7 * second);
  assert.equal(names(standings, 8 * second), ["b 9 8000"]);
  assert.equal(names(standings, 20 * second), ["b 9 20000"], "for as long as it stands still");
});

test("one that comes level, or moves at all, is not", () => {
  const { standings, a, b } = two();
  a.show("9", 0);
  standings.judge(0);
  b.show("9", second);
  assert.equal(names(standings, 10 * second), []);
  a.show("14", 11 * second);
  standings.judge(11 * second);
  b.show("12", 20 * second);
  assert.equal(names(standings, 21 * second), [], "it lags, and goes on: its time begins anew");
  assert.equal(names(standings, 30 * second), ["b 14 10000"]);
});

test("an older version changes nothing", () => {
  const { a } = two();
  a.show("10", 0);
  a.show("9", 0);
  assert.equal([a.version, a.event], ["10", "10"]);
});

test("a bookmark of another backend may tell of other resources: nobody is measured by it", () => {
  const { standings, a, b } = two();
  b.show("7", 0);
  a.tell(bookmark("99"), 0);
  standings.judge(0);
  assert.equal(names(standings, 60 * second), []);
});

test("a bookmark that comes eight seconds later and is still behind proves it; a marker or an earlier one does not", () => {
  const { standings, a, b } = two();
  b.tell(bookmark("7"), 0);
  a.show("9", 0);
  standings.judge(0);
  assert.not(doubted(standings, 10 * second).isTold);
  b.tell(bookmark("7", true), 20 * second);
  b.tell(bookmark("7"), limits.behindMs - 1);
  assert.not(doubted(standings, 30 * second).isTold);
  b.tell(bookmark("7"), 60 * second);
  assert.ok(doubted(standings, 60 * second).isTold);
});

test("without a watch there is nothing that it would show", () => {
  const { standings, a, b } = two();
  b.leave(false);
  a.show("9", 0);
  standings.judge(0);
  assert.equal(names(standings, 60 * second), []);
  b.join(false, 60 * second);
  standings.judge(60 * second);
  assert.equal(names(standings, 67 * second), [], "its time begins with the watch");
  assert.equal(names(standings, 68 * second), ["b 9 8000"]);
});

test("who has refused a version is known to refuse every older one, of that resource, until it begins anew", () => {
  const { standings, a } = two();
  const resource = a.resource;
  assert.equal(standings.refusing(resource, "9"), []);
  a.refuse("9", "");
  a.refuse("7", "");
  assert.equal(
    ["7", "9", "10", "100"].map((version) => standings.refusing(resource, version)),
    [["a"], ["a"], [], []],
  );
  assert.equal(standings.refusing("/other", "7"), []);
  a.refuse("9", "100");
  assert.equal(standings.refusing(resource, "99"), ["a"], "it says where its cache begins");
  assert.equal(standings.refusing(resource, "100"), []);
  assert.equal([standings.forgetful(), standings.forgetful()], [[a], []]);
  a.refuse("50", "100");
  assert.equal(standings.forgetful(), [], "nothing new");
  standings.forget("a");
  assert.equal(standings.refusing(resource, "7"), []);
});

test("versions of two resources are never compared", () => {
  const { standings, a, b } = two();
  standings.of("a", "apps/deployments").show("99", 0);
  a.show("5", 0);
  b.show("5", 0);
  standings.judge(0);
  assert.equal(names(standings, 60 * second), []);
});

test("a backend without watches is a measure all the same, until it is gone", () => {
  const { standings, a, b } = two();
  a.show("9", 0);
  a.leave(false);
  b.show("7", 0);
  standings.judge(0);
  assert.equal(names(standings, 10 * second), ["b 9 10000"]);
  standings.forget("a");
  assert.equal(names(standings, 11 * second), []);
  assert.is.not(standings.of("a", "/pods"), a);
});

test("who is found to stand still is avoided for a minute, then for two, until it shows what it had not", () => {
  const { standings, a, b } = two();
  const at = (now: number): readonly string[] => standings.stalledWith("/pods", now);
  a.show("9", 0);
  standings.judge(0);
  assert.ok(standings.isClear);
  standings.convict(doubted(standings, 10 * second), 10 * second);
  assert.equal([at(69 * second), at(70 * second)], [["b"], []]);
  assert.equal([standings.stalls(69 * second), standings.stalls(70 * second)], [1, 0]);
  standings.convict(doubted(standings, 80 * second), 80 * second);
  assert.equal([at(199 * second), at(200 * second)], [["b"], []]);
  assert.equal(standings.recovered(), []);
  b.show("9", 201 * second);
  assert.equal([standings.recovered(), standings.recovered()], [[b], []]);
  assert.equal([standings.isClear as boolean, isStalled(b, 81 * second)], [true, false]);
});

test("the time that it is avoided grows to ten minutes, and what is gone is forgotten", () => {
  const { standings, a } = two();
  a.show("9", 0);
  standings.judge(0);
  for (let times = 0; times < 9; times += 1) standings.convict(doubted(standings, 10 * second), 10 * second);
  assert.equal(standings.stalledWith("/pods", 10 * second + limits.stallSpellMostMs - 1), ["b"]);
  assert.equal(standings.stalledWith("/pods", 10 * second + limits.stallSpellMostMs), []);
  standings.forget("b");
  assert.ok(standings.isClear);
});

test("of too many resources the last are not compared, and one that nobody watches makes room", () => {
  const { standings } = two();
  const of = (index: number): Standing => standings.of("a", `x/${index}`);
  for (let index = 1; index < limits.standingResources; index += 1) of(index).join(true, 0);
  assert.is(standings.resources, limits.standingResources);
  assert.is.not(of(0), of(0), "no room");
  of(7).leave(true);
  assert.is(of(0), of(0));
  assert.is(standings.resources, limits.standingResources);
});

test("what is measured by is bounded, and the newest stay", () => {
  const { standings, a } = two();
  for (let version = 1; version <= 2 * limits.standingMarks; version += 1) {
    a.show(String(version + 100), version * second);
    standings.judge(version * second);
  }
  const { missing } = doubted(standings, 1000 * second);
  assert.equal(
    [missing.length, missing.at(-1)?.version],
    [limits.standingMarks, String(2 * limits.standingMarks + 100)],
  );
});

test("a backend that was removed is no measure for anybody, and nothing is kept of it", () => {
  const standings = new Standings();
  for (let number = 0; number < 50; number += 1) standings.of(`b-${number}`, "/pods").show("9", 0);
  standings.reconcile(["b-7"]);
  assert.is(standings.of("b-7", "/pods").version, "9");
  assert.is(standings.of("b-8", "/pods").version, "");
});

test("what clients have seen is remembered when the backend that showed it is forgotten, until it is no longer right", () => {
  const { standings, a, b } = two();
  const { resource } = a;
  assert.is(standings.seen("/nothing"), "");
  a.show("900", 0);
  b.show("20", 0);
  assert.is(standings.seen(resource), "900");
  standings.forget("a");
  standings.forget("b");
  assert.is(standings.seen(resource), "900");
  assert.not(standings.knows("b", resource));
  standings.of("b", resource).show("30", 0);
  assert.ok(standings.knows("b", resource));
  assert.is(standings.seen(resource), "900");
  standings.forgetSeen();
  assert.is(standings.seen(resource), "");
});

test.run();
