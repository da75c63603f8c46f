import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Incident } from "../../src/watch/incident.ts";

const test = suite("watch/incident");

const second = 1000;

test("three backends are asked, not more", () => {
  const incident = new Incident();
  assert.equal(
    [1, 2, 3, 4].map((at) => incident.mayTry(at)),
    [true, true, true, false],
  );
});

test("one that could not be asked does not count", () => {
  const incident = new Incident();
  for (let at = 0; at < 20; at += 1) {
    assert.ok(incident.mayTry(at));
    incident.uncount();
  }
  assert.not(incident.mayTry(15_000), "but its time does");
});

test("nobody is asked when 15 seconds have passed", () => {
  const incident = new Incident();
  assert.ok(incident.mayTry(100));
  assert.is(incident.leftMs(10_100), 5 * second);
  assert.ok(incident.mayTry(15_099));
  assert.not(incident.mayTry(15_100));
});

test("a backend that takes the watch ends the incident, and the next begins anew", () => {
  const incident = new Incident();
  incident.expire(0);
  for (let at = 0; at < 3; at += 1) incident.mayTry(at);
  incident.resumed(3);
  incident.progressed();
  assert.ok(incident.mayTry(40 * second));
  assert.is(incident.leftMs(40 * second), 15 * second);
  assert.not(incident.isExpired);
});

/** A resume at each of these times, with nothing new in between. */
function fruitless(...times: number[]): Incident {
  const incident = new Incident();
  for (const at of times) {
    assert.ok(incident.mayTry(at), String(at));
    incident.resumed(at);
  }
  return incident;
}

test("three resumes within a minute from which nothing comes are enough (row 19)", () => {
  const incident = fruitless(0, 10 * second, 20 * second);
  assert.not(incident.mayTry(30 * second));
  assert.not(incident.mayTry(60 * second));
});

test("one that takes the watch and refuses it in the same breath does not", () => {
  const incident = new Incident();
  for (const at of [0, 100, 200]) {
    assert.ok(incident.mayTry(at));
    incident.resumed(at + 50);
    incident.expire(at + 60);
  }
  assert.not(incident.mayTry(300));
  assert.ok(incident.isExpired);
});

test("one that held it for more than a second does", () => {
  const incident = new Incident();
  for (let attempt = 0; attempt < 3; attempt += 1) assert.ok(incident.mayTry(0));
  incident.resumed(0);
  assert.ok(incident.mayTry(1001));
});

test("something new between them makes them none", () => {
  const incident = fruitless(0, 10 * second);
  assert.not(incident.isFruitful);
  incident.progressed();
  assert.ok(incident.isFruitful);
  incident.resumed(20 * second);
  assert.ok(incident.mayTry(30 * second));
});

test("those of more than a minute ago do not count", () => {
  assert.ok(fruitless(0, 10 * second, 20 * second).mayTry(61 * second));
  assert.ok(fruitless(0, 30 * second, 61 * second, 62 * second).mayTry(63 * second));
});

test.run();
