import { setImmediate as turn } from "node:timers/promises";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { Address } from "../../../src/base/address.ts";
import { cannotListen, Failure } from "../../../src/base/failure.ts";
import { type Entry, Journal } from "../../../src/events/journal.ts";
import { adminLimits } from "../../../src/ops/admin/http/limits.ts";
import { Port } from "../../../src/ops/admin/port.ts";
import type { Admin } from "../../../src/ops/admin/server/server.ts";
import { manualClock } from "../../support/clock.ts";

const test = suite("ops/admin/port");

type Settings = { readonly address: Address; readonly authorization: undefined; readonly tls: undefined };

const settings = (host: string, port: number): Settings => ({
  address: { host, port },
  authorization: undefined,
  tls: undefined,
});

const old = settings("::", 7480);
const narrower = settings("127.0.0.1", 7480);
const elsewhere = settings("::", 7499);

/** A port on a simulated machine: each port number takes only one socket, and other processes have those in `taken`. */
function scene(isShared = false, code = "EADDRINUSE") {
  const clock = manualClock();
  const journal = new Journal(clock);
  const entries: Entry["kind"][] = [];
  journal.subscribe(({ kind }) => entries.push(kind));
  const open = new Set<number>();
  const taken = new Set<string>();
  const events: string[] = [];
  const bind = ({ address: { host, port } }: Settings): Promise<Admin | Failure> => {
    const address = `${host}:${port}`;
    const isUsed = taken.has(address) || open.has(port);
    events.push(`${isUsed ? "refused" : "opened"} ${address}`);
    if (isUsed)
      return Promise.resolve(cannotListen("admin", address, Object.assign(new Error("used"), { code })));
    open.add(port);
    const stop = (): Promise<void> => {
      open.delete(port);
      events.push(`closed ${address}`);
      return Promise.resolve();
    };
    return Promise.resolve({ address, descriptor: port, stop });
  };
  const secure = (): Promise<{ name: string; tls: undefined; reviewer: undefined; audiences: [] }> =>
    Promise.resolve({ name: "admin", tls: undefined, reviewer: undefined, audiences: [] });
  const port = new Port<Settings>({
    clock,
    journal,
    listener: "admin",
    secure,
    bind,
    isShared: () => isShared,
  });
  const wait = async (times: number): Promise<void> => {
    for (let time = 0; time < times; time += 1) {
      clock.advance(adminLimits.portRetryMs);
      await turn();
    }
  };
  return { port, clock, entries, taken, events, open, wait };
}

async function started(): Promise<ReturnType<typeof scene>> {
  const made = scene();
  assert.is(await made.port.start(old), undefined);
  made.events.length = 0;
  return made;
}

const takers = [
  {
    name: "for two seconds, as a predecessor does, is not reported",
    tries: 3,
    isShared: false,
    reported: [],
  },
  { name: "for longer is reported once", tries: 6, isShared: false, reported: ["listener.lost"] },
  { name: "and runs on the same node is not reported", tries: 6, isShared: true, reported: [] },
];
for (const { name, tries, isShared, reported } of takers)
  test(`a port that another process has ${name}, and is opened when it is free`, async () => {
    const { port, entries, taken, wait } = scene(isShared);
    taken.add(":::7480");
    assert.instance(await port.start(old), Failure);
    await wait(tries - 1);
    assert.equal([port.address, entries], ["", reported]);
    taken.clear();
    await wait(1);
    assert.equal([port.address, port.descriptor, entries], [":::7480", 7480, reported]);
    await port.stop();
  });

test("an address that this machine does not have is reported, also on a shared port", async () => {
  const { port, entries, taken, wait } = scene(true, "EADDRNOTAVAIL");
  taken.add(":::7480");
  await port.start(old);
  await wait(6);
  assert.equal(entries, ["listener.lost"]);
  await port.stop();
});

test("a move to the same settings does not touch the port", async () => {
  const { port, events } = await started();
  assert.is(await port.move(settings("::", 7480)), undefined);
  assert.equal(events, []);
});

test("a move to another port number opens the new port before the old one closes", async () => {
  const { port, events } = await started();
  assert.is(await port.move(elsewhere), undefined);
  assert.equal(events, ["opened :::7499", "closed :::7480"]);
  assert.is(port.address, ":::7499");
});

test("a move to another address with the same port number closes the old port first", async () => {
  const { port, events } = await started();
  assert.is(await port.move(narrower), undefined);
  assert.equal(events, ["closed :::7480", "opened 127.0.0.1:7480"]);
});

test("a move to a port that another process has fails, and the old port stays open", async () => {
  const { port, events, taken } = await started();
  taken.add(":::7499");
  assert.instance(await port.move(elsewhere), Failure);
  assert.equal(events, ["refused :::7499"]);
  assert.is(port.address, ":::7480");
  taken.clear();
  assert.is(await port.move(elsewhere), undefined, "the next reload tries again");
});

test("a move to a shared port that another process has succeeds, and the port opens when it is free", async () => {
  const { port, taken, entries, open, wait } = scene(true);
  await port.start(old);
  taken.add(":::7499");
  assert.is(await port.move(elsewhere), undefined);
  assert.equal([port.address, [...open]], ["", []]);
  taken.clear();
  await wait(1);
  assert.equal([port.address, entries], [":::7499", []]);
});

test("a port that was closed for a move that failed is reported at once, and opens when it is free", async () => {
  const { port, entries, taken, wait } = await started();
  taken.add("127.0.0.1:7480").add(":::7480");
  assert.instance(await port.move(narrower), Failure);
  await wait(2);
  assert.equal([port.address, entries], ["", ["listener.lost"]]);
  taken.clear();
  await wait(1);
  assert.is(port.address, ":::7480");
});

test("a port that waits for its address and moves to a free one no longer tries the old address", async () => {
  const { port, taken, events, wait } = await started();
  taken.add("127.0.0.1:7480").add(":::7480");
  await port.move(narrower);
  assert.is(await port.move(elsewhere), undefined);
  taken.clear();
  const before = events.length;
  await wait(5);
  assert.equal([port.address, events.length], [":::7499", before]);
});

test("a port that is stopped while it waits for its address does not open", async () => {
  const { port, taken, open, events, wait } = await started();
  taken.add("127.0.0.1:7480").add(":::7480");
  await port.move(narrower);
  await port.stop();
  taken.clear();
  const before = events.length;
  await wait(10);
  assert.equal([events.length, open.size], [before, 0]);
});

test.run();
