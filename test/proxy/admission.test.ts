import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../src/limits.ts";
import { Admission, type Entry } from "../../src/proxy/admission.ts";
import { type ManualClock, manualClock } from "../support/clock.ts";
import { bearer, type Ear, PlayedPath } from "../support/path.ts";

const test = suite("proxy/admission");

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
  if (entries[1] !== undefined) admission.proved(entries[1]);
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
  clock.advance(limits.unprovenHeldMs + limits.unprovenLookMs);
  assert.equal(heard, ["c placed", "d placed"]);
  assert.is(admission.open, 3);
});

test("one address has a tenth of the places, all addresses have all of them; what waits is refused in the end", () => {
  const { clock, admission, heard, enter } = admitting();
  for (let index = 0; index <= limits.unprovenPerSource; index += 1) enter(`flood ${index}`);
  assert.equal([admission.open, admission.waiting], [limits.unprovenPerSource, 1]);
  const other = enter("another address", "10.0.0.2");
  assert.is(other?.state, "open");
  for (let index = 0; index < 2 * limits.unprovenRequests; index += 1)
    enter(`herd ${index}`, `10.1.${index % 200}.1`);
  assert.is(admission.open, limits.unprovenRequests);
  clock.advance(limits.unprovenWaitMs + limits.unprovenLookMs);
  assert.is(admission.waiting, 0);
  assert.is(admission.open, limits.unprovenRequests);
  assert.is(heard.filter((one) => one.endsWith("refused")).length, heard.length);
  assert.ok(heard.includes(`flood ${limits.unprovenPerSource} refused`));
});

test("addresses take turns: one that floods does not come before others", () => {
  const { clock, admission, heard, enter } = admitting();
  const open: (Entry | undefined)[] = [];
  for (let index = 0; index < limits.unprovenRequests; index += 1)
    open.push(enter("", `10.9.${index % 20}.1`));
  for (let index = 0; index < 500; index += 1) enter("flood", "10.0.0.1");
  enter("late", "10.0.0.2");
  for (const entry of open.slice(0, 3)) if (entry !== undefined) admission.leave(entry);
  clock.turn();
  assert.equal(heard, ["flood placed", "late placed", "flood placed"]);
});

test("one address has so many that wait, all have ten thousand; the next one is refused at once", () => {
  const { admission, enter } = admitting();
  for (let index = 0; index < limits.unprovenPerSource + limits.unprovenWaiting; index += 1)
    assert.ok(enter("flood"));
  assert.is(enter("one more"), undefined);
  let address = 0;
  while (address < 60_000 && enter("herd", `10.1.${address >> 8}.${address % 256}`) !== undefined)
    address += 1;
  assert.is(admission.waiting, limits.waitingExchanges);
});

test("nothing is kept of those that are gone", () => {
  const { admission, enter } = admitting();
  const entries = Array.from({ length: 3000 }, (_, index) =>
    enter("", `10.0.${index % 7}.1`, `t${index % 50}`),
  );
  for (const entry of entries) if (entry !== undefined) admission.leave(entry);
  assert.equal([admission.open, admission.waiting, admission.groups], [0, 0, 0]);
});

// --- on the whole path, before backends that send GOAWAY behind each 401 ---

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

/** So many new bearers, one client each, with so many watches each as first requests, at so many a second. */
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

test("watches that began on an unproven lane hold up no newcomer, however many they are", () => {
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
  assert.is(path.admission.open, limits.unprovenPerSource);
  const newcomer = path.client({ address: "10.0.0.2" }).ask("GET", watchTarget, [bearer("new")]);
  const known = client.ask("GET", watchTarget, [bearer("good")]);
  path.clock.advance(100);
  assert.equal([newcomer.status, known.status], ["200", "200"]);
});

/** Clients whose bearers were accepted are refused from now on, but for those whose name begins with "good". */
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

test("whatever its backend does, a request that is sent away again and again is told so in the end", () => {
  const path = new PlayedPath(["a"]);
  path.backend("a").isSendingAway = true;
  const ear = path.client().ask("GET", "/api", [bearer("t")]);
  path.clock.advance(limits.sentAwayMs - 1000);
  assert.is(ear.status, "");
  path.clock.advance(5000);
  assert.is(ear.status, "503");
});

test.run();
