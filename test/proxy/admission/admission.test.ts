import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import {
  Admission,
  admissionLimits,
  type Entry,
  Rejections,
} from "../../../src/proxy/admission/admission.ts";
import { requestLimits } from "../../../src/proxy/request/limits.ts";
import { type ManualClock, manualClock } from "../../support/clock.ts";
import { bearer, type Ear, PlayedPath } from "../../support/path.ts";

const test = suite("proxy/admission/admission");

const watchTarget = "/api/v1/pods?watch=1";

function admitting(): {
  clock: ManualClock;
  admission: Admission;
  heard: string[];
  enter(name: string, address?: string, key?: string): Entry | undefined;
} {
  const clock = manualClock();
  const admission = new Admission(clock);
  const heard: string[] = [];
  const enter = (name: string, address = "10.0.0.1", key = ""): Entry | undefined =>
    admission.enter({
      address,
      bearer: key,
      place: () => heard.push(`${name} placed`),
      refuse: () => heard.push(`${name} refused`),
    });
  return { clock, admission, heard, enter };
}

test("a new bearer's first requests go at once, the others wait for its first answer and go then, uncounted", () => {
  const { clock, admission, heard, enter } = admitting();
  const entries = ["a", "b", "c", "d"].map((name) => enter(name, "10.0.0.1", "t"));
  assert.equal(
    entries.map((entry) => entry?.state),
    ["open", "open", "held", "held"],
  );
  if (entries[1] !== undefined) admission.answered(entries[1], true);
  clock.turn();
  assert.equal(heard, ["c placed", "d placed"]);
  assert.equal([admission.open, admission.waiting], [0, 0]);
  for (const entry of entries) if (entry !== undefined) admission.leave(entry);
  assert.equal([admission.open, admission.waiting], [0, 0]);
});

test("when a first request ends without an answer that proves its bearer, the next one goes; when it hangs, the others soon do", () => {
  const { clock, admission, heard, enter } = admitting();
  const [first] = ["a", "b", "c", "d"].map((name) => enter(name, "10.0.0.1", "t"));
  if (first !== undefined) admission.leave(first);
  clock.turn();
  assert.equal(heard, ["c placed"]);
  clock.advance(admissionLimits.unprovenHeldMs + admissionLimits.unprovenLookMs);
  assert.equal(heard, ["c placed", "d placed"]);
  assert.is(admission.open, 3);
});

test("one address has a tenth of the places, all addresses have all of them; what waits is refused in the end", () => {
  const { clock, admission, heard, enter } = admitting();
  for (let index = 0; index <= admissionLimits.unprovenPerSource; index += 1) enter(`flood ${index}`);
  assert.equal([admission.open, admission.waiting], [admissionLimits.unprovenPerSource, 1]);
  const other = enter("another address", "10.0.0.2");
  assert.is(other?.state, "open");
  for (let index = 0; index < 2 * admissionLimits.unprovenRequests; index += 1)
    enter(`herd ${index}`, `10.1.${index % 200}.1`);
  assert.is(admission.open, admissionLimits.unprovenRequests);
  clock.advance(admissionLimits.unprovenWaitMs + admissionLimits.unprovenLookMs);
  assert.is(admission.waiting, 0);
  assert.is(admission.open, admissionLimits.unprovenRequests);
  assert.is(heard.filter((one) => one.endsWith("refused")).length, heard.length);
  assert.ok(heard.includes(`flood ${admissionLimits.unprovenPerSource} refused`));
});

test("addresses take turns: one that floods does not come before others", () => {
  const { clock, admission, heard, enter } = admitting();
  const open: (Entry | undefined)[] = [];
  for (let index = 0; index < admissionLimits.unprovenRequests; index += 1)
    open.push(enter("", `10.9.${index % 20}.1`));
  for (let index = 0; index < 500; index += 1) enter("flood", "10.0.0.1");
  enter("late", "10.0.0.2");
  for (const entry of open.slice(0, 3)) if (entry !== undefined) admission.leave(entry);
  clock.turn();
  assert.equal(heard, ["flood placed", "late placed", "flood placed"]);
});

test("5,000 bearers with ten requests each wait behind one address; the next one is refused at once, and other addresses find room", () => {
  const { admission, enter } = admitting();
  const fill = (address: string): number => {
    const before = admission.waiting;
    while (enter("", address) !== undefined) continue;
    return admission.waiting - before;
  };
  assert.is(fill("10.0.0.1"), 50_000);
  assert.is(fill("10.0.0.2"), 10_000);
  for (let address = 3; address < 10; address += 1) fill(`10.0.0.${address}`);
  // By now, all places for requests in progress and in the queue are taken.
  for (let address = 10; address < 20; address += 1) fill(`10.0.0.${address}`);
  assert.is(admission.open, admissionLimits.unprovenRequests);
  assert.is(admission.waiting, admissionLimits.unprovenWaiting);
});

test("an address whose requests are answered 401 again and again is rejected: fewer of its requests wait; it is forgiven", () => {
  const { admission, enter, clock } = admitting();
  const refuse = (key: string): void => {
    const entry = enter("", "10.6.6.6", key);
    if (entry === undefined) return;
    admission.answered(entry, false);
    admission.leave(entry);
  };
  for (let count = 0; count < admissionLimits.rejections; count += 1) refuse(`bad ${count}`);
  assert.not(admission.isRejected("10.6.6.6"));
  refuse("another");
  assert.ok(admission.isRejected("10.6.6.6"));
  assert.not(admission.isRejected("10.6.6.7"));
  let count = 0;
  while (enter("", "10.6.6.6") !== undefined) count += 1;
  assert.is(count, admissionLimits.unprovenPerSource + admissionLimits.rejectedWaiting);
  clock.advance(1000 * admissionLimits.rejectionsMost);
  assert.not(admission.isRejected("10.6.6.6"));
});

test("a flood that is answered 401, from however many addresses it comes, leaves half of the room to others", () => {
  const { admission, enter } = admitting();
  for (let address = 0; address < 20; address += 1) {
    const entry = enter("", `10.6.6.${address}`, "bad");
    for (let count = 0; count <= admissionLimits.rejections; count += 1)
      if (entry !== undefined) admission.answered(entry, false);
    while (enter("", `10.6.6.${address}`) !== undefined) continue;
  }
  // Some requests of these addresses wait in the queue all the same: the first request of each address was queued
  // before a 401 had shown that its address is hostile.
  assert.ok(admission.waiting <= admissionLimits.unprovenWaiting / 2 + 20, `${admission.waiting}`);
  let count = 0;
  while (enter("", "10.0.0.1") !== undefined) count += 1;
  assert.ok(count > 24_900, `${count}`);
});

test("under load the first requests of all bearers of an address come before further ones of any", () => {
  const { clock, admission, heard, enter } = admitting();
  const hanging = Array.from({ length: admissionLimits.unprovenPerSource }, (_, index) =>
    enter("", "10.0.0.1", `hangs ${index}`),
  );
  for (const name of ["a", "b", "c"]) {
    for (let at = 0; at < 4; at += 1) enter(`${name}${at}`, "10.0.0.1", name);
    clock.advance(admissionLimits.unprovenHeldMs + admissionLimits.unprovenLookMs);
  }
  for (const entry of hanging.slice(0, 7)) if (entry !== undefined) admission.leave(entry);
  clock.turn();
  assert.equal(
    heard.map((one) => one.slice(0, 2)),
    ["a0", "a1", "b0", "b1", "c0", "c1", "a2"],
  );
});

test("nothing is kept of those that are gone", () => {
  const { admission, enter } = admitting();
  const entries = Array.from({ length: 3000 }, (_, index) =>
    enter("", `10.0.${index % 7}.1`, `t${index % 50}`),
  );
  for (const entry of entries) if (entry !== undefined) admission.leave(entry);
  assert.equal([admission.open, admission.waiting, admission.groups], [0, 0, 0]);
});

// --- Admission on the whole data path, with backends that send GOAWAY after each 401 ---

function authenticating(answerMs = 5): PlayedPath {
  const path = new PlayedPath(["a", "b"]);
  for (const name of ["a", "b"]) {
    path.backend(name).authenticates = (authorization) => /^Bearer (good|new)/.test(authorization);
    path.backend(name).answerMs = answerMs;
    path.backend(name).goAwayMs = 5;
  }
  return path;
}

const statuses = (ears: readonly Ear[]): Record<string, number> => {
  const counts: Record<string, number> = {};
  for (const { status } of ears) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
};

/**
 * Lets `bearers` new clients connect, each with its own new token. The first requests of each are `watches` watches. In
 * all, `perSecond` watches arrive each second.
 */
function herd(path: PlayedPath, bearers: number, watches: number, perSecond: number): Ear[] {
  const ears: Ear[] = [];
  for (let index = 0; index < bearers; index += 1) {
    const client = path.client();
    for (let watch = 0; watch < watches; watch += 1)
      ears.push(client.ask("GET", watchTarget, [bearer(`new-${index}`)]));
    path.clock.advance((1000 * watches) / perSecond);
  }
  return ears;
}

test("after a restart, 300 new bearers begin with 10 watches each: none is refused, all are open in 100 ms, newcomers too", () => {
  const path = authenticating();
  const ears = herd(path, 300, 10, 2000);
  path.clock.advance(100);
  assert.equal(statuses(ears), { 200: 3000 });
  assert.equal([path.admission.open, path.admission.waiting], [0, 0]);
  const late = path.client().ask("GET", watchTarget, [bearer("new-comer")]);
  path.clock.advance(100);
  assert.is(late.status, "200");
});

test("watches that began on an unproven upstream connection hold up no newcomer, however many they are", () => {
  const path = authenticating();
  const ears = herd(path, 2800, 1, 2000);
  path.clock.advance(100);
  assert.equal(statuses(ears), { 200: 2800 });
});

test("a hostile flood that hangs has its places and no more: other addresses' newcomers and the proven are served", () => {
  const path = authenticating();
  const client = path.client({ address: "10.0.0.1" });
  client.ask("GET", "/api", [bearer("good")]);
  path.clock.advance(100);
  for (let flooder = 0; flooder < 20; flooder += 1) {
    const attacker = path.client({ address: "10.6.6.6" });
    for (let index = 0; index < 100; index += 1)
      attacker.ask(
        "GET",
        `${watchTarget}&hang`,
        index % 2 === 0 ? [] : [bearer(`invented-${flooder}-${index}`)],
      );
  }
  path.clock.advance(1000);
  assert.is(path.admission.open, admissionLimits.unprovenPerSource);
  const newcomer = path.client({ address: "10.0.0.2" }).ask("GET", watchTarget, [bearer("new")]);
  const known = client.ask("GET", watchTarget, [bearer("good")]);
  path.clock.advance(100);
  assert.equal([newcomer.status, known.status], ["200", "200"]);
});

/**
 * From now on, backends refuse all tokens except those that begin with "good", even tokens that they have accepted
 * before.
 */
function revoke(path: PlayedPath): void {
  for (const name of ["a", "b"])
    path.backend(name).authenticates = (authorization) => authorization.startsWith("Bearer good");
}

for (const [what, isKnown] of [
  ["were accepted before", true],
  ["were never accepted", false],
] as const) {
  test(`A43: a storm of 401s, of bearers that ${what}, each with its GOAWAY: all are told 401, the proven feel nothing`, () => {
    const path = authenticating(20);
    const good = Array.from({ length: 20 }, () => path.client());
    const bad = Array.from({ length: 300 }, () => path.client());
    const watches = good.map((client, index) => client.ask("GET", watchTarget, [bearer(`good-${index}`)]));
    if (isKnown)
      for (const [index, client] of bad.entries()) client.ask("GET", "/api", [bearer(`new-${index}`)]);
    path.clock.advance(1000);
    revoke(path);
    const [told, served]: [Ear[], Ear[]] = [[], []];
    const askGood = (): Ear[] => good.map((one, at) => one.ask("GET", "/api", [bearer(`good-${at}`)]));
    for (let round = 0; round < 3; round += 1)
      for (const [index, client] of bad.entries()) {
        told.push(client.ask("GET", round === 1 ? watchTarget : "/api", [bearer(`new-${index}`)]));
        if (index % 15 === 0) served.push(...askGood());
        path.clock.advance(1);
      }
    path.clock.advance(2000);
    assert.equal(statuses(told), { 401: 900 });
    assert.equal(statuses(served), { 200: 1200 });
    assert.ok(
      watches.every(
        ({ status, isEnded, resetCode }) => status === "200" && !isEnded && resetCode === undefined,
      ),
    );
    assert.equal(
      path.changes.filter(({ to }) => to !== "ready"),
      [],
    );
  });
}

test("a request that is sent away with GOAWAY again and again, unprocessed, is asked until it is answered", () => {
  const path = authenticating();
  for (const name of ["a", "b"]) path.backend(name).isSendingAway = true;
  const ear = path.client().ask("POST", "/api", [bearer("new")]);
  path.clock.advance(1000);
  const asked = path.backend("a").asked.length + path.backend("b").asked.length;
  assert.ok(asked > limits.attempts, `${asked} times`);
  for (const name of ["a", "b"]) path.backend(name).isSendingAway = false;
  path.clock.advance(1000);
  assert.is(ear.status, "200");
});

test("the time that a request waits for a place is none of the time for which it may be sent away", () => {
  const path = authenticating();
  const hanging = Array.from({ length: admissionLimits.unprovenPerSource }, () => path.client());
  for (const client of hanging) client.ask("GET", `${watchTarget}&hang`);
  const ear = path.client().ask("GET", "/api", [bearer("new-late")]);
  path.clock.advance(requestLimits.sentAwayMs + 5000);
  for (const name of ["a", "b"]) path.backend(name).isSendingAway = true;
  for (const client of hanging) client.hangUp();
  path.clock.advance(1000);
  assert.is(ear.status, "");
  for (const name of ["a", "b"]) path.backend(name).isSendingAway = false;
  path.clock.advance(1000);
  assert.is(ear.status, "200");
});

test("A43: watches with invented tokens, and anonymous ones, send no newcomer of another address away", () => {
  const path = authenticating();
  const attackers = Array.from({ length: 20 }, () => path.client({ address: "10.6.6.6" }));
  const late: number[] = [];
  for (let round = 0; round < 100; round += 1) {
    for (const [at, attacker] of attackers.entries())
      attacker.ask("GET", watchTarget, at % 2 === 0 ? [] : [bearer(`invented-${round}-${at}`)]);
    // During this time, the backends' GOAWAYs arrive.
    path.clock.advance(7);
    if (round < 20) continue;
    const newcomer = path.client({ address: `10.0.0.${round}` });
    const ear = newcomer.ask("GET", watchTarget, [bearer(`new-${round}`)]);
    const askedAt = path.clock.now();
    for (let ms = 0; ms < 1000 && ear.status === ""; ms += 1) path.clock.advance(1);
    assert.is(ear.status, "200");
    late.push(path.clock.now() - askedAt);
  }
  assert.ok(path.admission.isRejected("10.6.6.6"));
  // The backend takes about as long to answer, so newcomers wait for nothing else.
  assert.ok(Math.max(...late) <= 6, late.join());
});

test("whatever its backend does, a request that is sent away again and again is told so in the end", () => {
  const path = new PlayedPath(["a"]);
  path.backend("a").isSendingAway = true;
  const ear = path.client().ask("GET", "/api", [bearer("t")]);
  path.clock.advance(requestLimits.sentAwayMs - 1000);
  assert.is(ear.status, "");
  path.clock.advance(5000);
  assert.is(ear.status, "503");
});

const times = (count: number, run: () => void): void => {
  for (let index = 0; index < count; index += 1) run();
};

test("A43: an address with more 401s than bearers that were accepted is rejected, and forgiven after a minute at most", () => {
  const clock = manualClock();
  const rejections = new Rejections(clock);
  times(admissionLimits.rejections + 1, () => rejections.add("a"));
  assert.ok(rejections.isRejected("a"));
  assert.not(rejections.isRejected("b"));
  clock.advance(1000);
  assert.not(rejections.isRejected("a"));
  times(100_000, () => rejections.add("a"));
  clock.advance(59_000);
  assert.ok(rejections.isRejected("a"));
  clock.advance(1000);
  assert.not(rejections.isRejected("a"));
});

test("a few bad tokens among many good ones reject no client, and are forgotten", () => {
  const rejections = new Rejections(manualClock());
  times(5000, () => {
    rejections.add("nat");
    rejections.accepted("nat");
    rejections.accepted("nat");
  });
  assert.not(rejections.isRejected("nat"));
  assert.is(rejections.size, 0);
  // A request that was accepted long ago does not excuse these rejections.
  times(admissionLimits.rejections + 1, () => rejections.add("nat"));
  assert.ok(rejections.isRejected("nat"));
});

test("so many addresses are counted, and no more", () => {
  const rejections = new Rejections(manualClock());
  for (let index = 0; index < admissionLimits.rejectedAddresses + 100; index += 1)
    rejections.add(`a${index}`);
  assert.is(rejections.size, admissionLimits.rejectedAddresses);
});

test.run();
