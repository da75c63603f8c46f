import { suite } from "uvu";
import * as assert from "uvu/assert";
import { workerLimits } from "../../../src/fleet/workers/limits.ts";
import { Picker } from "../../../src/fleet/workers/picker.ts";

const test = suite("fleet/workers/picker");

type Played = { name: string; sockets: number; isOpen: boolean };

function workers(...sockets: readonly number[]): Played[] {
  return sockets.map((count, at) => ({ name: "abc"[at] ?? "", sockets: count, isOpen: true }));
}

test("a new address gets the worker with the fewest sockets, and comes back to it", () => {
  const all = workers(5, 3, 4);
  const picker = new Picker<Played>();
  assert.is(picker.pick(all, "10.0.0.1")?.name, "b");
  all[1] = { name: "b", sockets: 4, isOpen: true };
  const [a, , c] = all;
  const stayed = new Picker<Played>();
  const first = stayed.pick(all, "10.0.0.2");
  assert.ok(a !== undefined && c !== undefined && first !== undefined);
  a.sockets = first.sockets;
  c.sockets = first.sockets - 1;
  assert.is(stayed.pick(all, "10.0.0.2"), first, "one socket more is no reason to change");
});

test("an address with many connections is spread", () => {
  const all = workers(0, 0);
  const picker = new Picker<Played>();
  for (let socket = 0; socket < 1000; socket += 1) {
    const picked = picker.pick(all, "10.0.0.1");
    assert.ok(picked !== undefined);
    picked.sockets += 1;
  }
  const [one = 0, other = 0] = all.map(({ sockets }) => sockets);
  assert.is(one + other, 1000);
  assert.ok(Math.abs(one - other) <= 1000 / 16 + workerLimits.moreSockets, `${one} and ${other}`);
});

test("many addresses with one connection each are spread evenly", () => {
  const all = workers(0, 0, 0);
  const picker = new Picker<Played>();
  for (let client = 0; client < 300; client += 1) {
    const picked = picker.pick(all, `10.0.${client >> 8}.${client & 255}`);
    assert.ok(picked !== undefined);
    picked.sockets += 1;
  }
  assert.equal(
    all.map(({ sockets }) => sockets),
    [100, 100, 100],
  );
});

test("a worker that takes none gets none, and no worker may be left", () => {
  const all = workers(0, 9);
  const [first, second] = all;
  assert.ok(first !== undefined && second !== undefined);
  const picker = new Picker<Played>();
  picker.pick(all, "10.0.0.1");
  first.isOpen = false;
  assert.is(picker.pick(all, "10.0.0.1"), second);
  second.isOpen = false;
  assert.is(picker.pick(all, "10.0.0.1"), undefined);
});

test("the memory of addresses is bounded", () => {
  const all = workers(0, 0);
  const picker = new Picker<Played>();
  const picked = picker.pick(all, "first");
  assert.ok(picked !== undefined);
  picked.sockets = 1;
  for (let client = 0; client < workerLimits.addresses; client += 1) picker.pick(all, String(client));
  assert.is.not(picker.pick(all, "first"), picked, "it has forgotten the oldest address");
});

test.run();
