import { suite } from "uvu";
import * as assert from "uvu/assert";
import { adminLimits } from "../../../src/admin/http/limits.ts";
import { MovablePort } from "../../../src/admin/server/movable-port.ts";
import type { Address } from "../../../src/base/address.ts";
import { Failure } from "../../../src/base/failure.ts";
import { type Entry, Journal } from "../../../src/events/journal.ts";
import { manualClock } from "../../support/clock.ts";

const test = suite("admin/server/movable-port");

type Settings = { readonly address: Address; readonly certFile?: string };
type Port = { readonly settings: Settings; stop(): Promise<void> };

const old: Settings = { address: { host: "::", port: 7480 } };
const narrower: Settings = { address: { host: "127.0.0.1", port: 7480 } };
const elsewhere: Settings = { address: { host: "::", port: 7499 } };

/**
 * Sets up a movable port on a simulated machine: each port number takes only one socket, and some numbers are in use.
 */
function scene() {
  const clock = manualClock();
  const journal = new Journal(clock);
  const entries: Entry[] = [];
  journal.subscribe((entry) => entries.push(entry));
  const open = new Set<Port>();
  const taken = new Set<string>();
  const events: string[] = [];
  const bind = (settings: Settings): Port | Failure => {
    const { host, port } = settings.address;
    const isUsed =
      taken.has(`${host}:${port}`) || Array.from(open).some((one) => one.settings.address.port === port);
    events.push(`${isUsed ? "refused" : "opened"} ${host}:${port}`);
    if (isUsed) return new Failure("bad-request", "proxy", "in use");
    const made: Port = {
      settings,
      stop() {
        open.delete(made);
        events.push(`closed ${host}:${port}`);
        return Promise.resolve();
      },
    };
    open.add(made);
    return made;
  };
  const first = bind(old);
  if (first instanceof Failure) throw new Error(first.message);
  events.length = 0;
  const open1 = (settings: Settings): Promise<Port | Failure> => Promise.resolve(bind(settings));
  const port = new MovablePort(old, first, { clock, journal, listener: "admin", open: open1 });
  return { port, clock, entries, taken, events, open };
}

test("settings that stay the same do not touch the port", async () => {
  const { port, events } = scene();
  assert.is(await port.move({ address: { ...old.address } }), undefined);
  assert.equal(events, []);
});

test("a port with another number opens before the old one closes", async () => {
  const { port, events } = scene();
  assert.is(await port.move(elsewhere), undefined);
  assert.equal(events, ["opened :::7499", "closed :::7480"]);
  assert.equal(port.port?.settings, elsewhere);
});

test("a port with the same number opens after the old one has closed", async () => {
  const { port, events } = scene();
  assert.is(await port.move(narrower), undefined);
  assert.equal(events, ["closed :::7480", "opened 127.0.0.1:7480"]);
});

test("if another process has the new port, the old one stays open", async () => {
  const { port, events, taken } = scene();
  taken.add(":::7499");
  assert.instance(await port.move(elsewhere), Failure);
  assert.equal(events, ["refused :::7499"]);
  assert.equal(port.port?.settings, old);
  taken.clear();
  assert.is(await port.move(elsewhere), undefined, "the next reload tries again");
});

test("a port that was closed for another one opens again, as soon as it is free", async () => {
  const { port, clock, entries, events, taken } = scene();
  taken.add("127.0.0.1:7480").add(":::7480");
  assert.instance(await port.move(narrower), Failure);
  assert.is(port.port, undefined);
  assert.equal(
    entries.map(({ kind }) => kind),
    ["listener.lost"],
  );
  taken.clear();
  clock.advance(adminLimits.apiRetryMs);
  await Promise.resolve();
  await Promise.resolve();
  assert.equal(port.port?.settings, old);
  assert.is(events.at(-1), "opened :::7480");
});

test("a stopped port does not open again", async () => {
  const { port, clock, events, taken, open } = scene();
  taken.add("127.0.0.1:7480").add(":::7480");
  await port.move(narrower);
  await port.stop();
  taken.clear();
  const before = events.length;
  clock.advance(10 * adminLimits.apiRetryMs);
  assert.equal([events.length, open.size], [before, 0]);
});

test.run();
