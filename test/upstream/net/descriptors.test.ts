import { openSync } from "node:fs";
import { createServer } from "node:net";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import {
  adminName,
  Descriptors,
  descriptorOf,
  passedIn,
  passedOn,
} from "../../../src/upstream/net/descriptors.ts";

const test = suite("descriptors");

test("systemd's sockets begin at 3, in the order of their names", () => {
  const environment = { LISTEN_FDS: "2", LISTEN_FDNAMES: "kube:local", LISTEN_PID: "7", PATH: "/bin" };
  const passed = passedIn(environment, 7);
  assert.equal([passed.take("local"), passed.take("kube"), passed.take("kube")], [4, 3, undefined]);
  assert.equal(environment, { PATH: "/bin" });
});

test("sockets that were passed to another process are not this one's", () => {
  const environment = { LISTEN_FDS: "1", LISTEN_PID: "8" };
  assert.ok(passedIn(environment, 7).isEmpty);
  assert.equal(environment, {});
  assert.ok(passedIn({}, 7).isEmpty);
  for (const LISTEN_FDS of ["", "-1", "x", "1e3", "9999"])
    assert.ok(passedIn({ LISTEN_FDS }, 7).isEmpty, LISTEN_FDS);
});

test("what is passed on is what the successor reads", () => {
  const passed = passedIn({ ...passedOn(["kube", adminName], false) }, 9);
  assert.is(passed.areKept, false);
  assert.equal([passed.take("kube"), passed.take(adminName)], [3, 4]);
  assert.ok(passed.isEmpty);
});

test("systemd keeps its sockets open after the process, and also after each successor", () => {
  const environment: NodeJS.ProcessEnv = { LISTEN_FDS: "1", LISTEN_FDNAMES: "kube", LISTEN_PID: "7" };
  for (let generation = 0; generation < 3; generation += 1) {
    const passed = passedIn(environment, 7);
    assert.ok(passed.areKept);
    assert.equal(environment, {});
    Object.assign(environment, passedOn(["kube"], passed.areKept));
  }
});

test("a single socket may have the unit's name, but is not taken for the port of metrics", () => {
  const passed = passedIn({ LISTEN_FDS: "1", LISTEN_FDNAMES: "watchkeeper.socket" }, 7);
  assert.is(passed.take(adminName), undefined);
  assert.is(passed.take("kube"), 3);
  const two = passedIn({ LISTEN_FDS: "2" }, 7);
  assert.is(two.take("kube"), undefined);
});

test("the socket of another process is its own listener's only; a second one for it, and one that is left, are closed", () => {
  const closed: string[] = [];
  const handle = (name: string) => ({ close: () => void closed.push(name) });
  const sockets = new Descriptors();
  const first = handle("first");
  sockets.add("kube", first);
  assert.is(sockets.take("local"), undefined);
  sockets.add("kube", handle("second"));
  sockets.add(adminName, handle("admin"));
  assert.equal(closed, ["second", "admin"]);
  assert.is(sockets.take("kube"), first);
  sockets.add("kube", handle("late"));
  sockets.closeRest();
  assert.equal(closed, ["second", "admin", "late"]);
});

test("a descriptor that no listener has taken is closed, also when it was no socket", () => {
  const descriptor = openSync("/dev/null", "r");
  const passed = new Descriptors([
    ["gone", descriptor],
    ["never", 999_999],
  ]);
  passed.closeRest();
  assert.ok(passed.isEmpty);
  // The kernel gives out the lowest free number.
  assert.is(openSync("/dev/null", "r"), descriptor);
});

test("a listening server has a descriptor, on this Node as well", async () => {
  const server = createServer();
  assert.is(descriptorOf(server), undefined);
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  assert.type(descriptorOf(server), "number");
  server.close();
  assert.is(descriptorOf(server), undefined);
  assert.is(descriptorOf({}), undefined);
});

test.run();
