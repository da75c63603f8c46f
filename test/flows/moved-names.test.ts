import { suite } from "uvu";
import * as assert from "uvu/assert";
import { NamedAddresses } from "../../src/proxy/cluster/named-addresses.ts";
import { upstreamLimits } from "../../src/upstream/pool/limits.ts";
import { bearer, PlayedPath } from "../support/path.ts";
import { ok, PlayedWatch } from "../support/watch-path.ts";

const test = suite("flows/moved-names");

const [old, next] = ["10.0.0.1", "10.0.0.2"];

/** A path whose backends have DNS names, all of which have the addresses `named.addresses`; undefined: no answer. */
async function moving(names: readonly string[]) {
  const path = new PlayedPath(names, { isProbed: true });
  for (const backend of path.played.values()) backend.address = old;
  const named: { addresses: readonly string[] | "fails" | "hangs"; lookups: number } = {
    addresses: [old],
    lookups: 0,
  };
  const follower = new NamedAddresses({
    clock: path.clock,
    backends: () => [...names.map((name) => ({ name, host: "cp.test" })), { name: "ip", host: "192.0.2.1" }],
    lookup: async () => {
      named.lookups += 1;
      if (named.addresses === "hangs") return new Promise(() => {});
      if (named.addresses === "fails") throw new Error("getaddrinfo EAI_AGAIN cp.test");
      return named.addresses.map((address) => ({ address }));
    },
    onAnswer: (backend, isUnnamed) => path.pools.poolOf(backend)?.leaveAddresses(isUnnamed),
  });
  follower.start();
  const pass = async (seconds: number): Promise<void> => {
    for (let second = 0; second < seconds; second += 1) {
      path.clock.advance(1000);
      // The answer of a lookup arrives in a microtask.
      await Promise.resolve();
      await Promise.resolve();
      await Promise.resolve();
      path.settle();
    }
  };
  return { path, named, pass };
}

/** Returns the number of open connections to this address that take new streams. */
function openAt(path: PlayedPath, name: string, address: string): number {
  return path.backend(name).sessions.filter((one) => one.address === address && one.session.isOpen).length;
}

test("connections to an address that a name has no longer drain within a minute; a single backend works on", async () => {
  const { path, named, pass } = await moving(["a"]);
  const backend = path.backend("a");
  const client = path.client();
  const watch = client.ask("GET", "/api/v1/pods?watch=true&resourceVersion=7", [bearer("t")]);
  const log = client.ask("GET", "/api/v1/namespaces/n/pods/p/log?follow=true", [bearer("t")]);
  path.settle();
  const [watched, logged] = backend.asked;
  for (const asked of [watched, logged]) asked?.side?.sendHeaders(ok, false);
  await pass(60);
  assert.is(openAt(path, "a", old) > 0, true);
  const before = backend.asked.length;
  backend.address = next;
  named.addresses = [next];
  await pass(60);
  assert.is(openAt(path, "a", old), 0);
  assert.ok(openAt(path, "a", next) > 0);
  // The watch was resumed over the new connection; the log goes on over the old one.
  assert.equal(
    backend.asked.slice(before).map(({ request }) => request.path.replace(/&timeout.*/, "")),
    ["/api/v1/pods?watch=true&resourceVersion=7"],
  );
  backend.last.side?.sendHeaders(ok, false);
  logged?.say("line");
  path.settle();
  assert.equal(
    [watch.isEnded, watch.resetCode, log.body, log.resetCode],
    [false, undefined, "line", undefined],
  );
  client.ask("GET", "/api/v1/nodes", [bearer("t")]);
  path.settle();
  assert.is(backend.last.request.path, "/api/v1/nodes");
});

test("an outage of DNS changes nothing, nor does an answer with a random part of the addresses", async () => {
  for (const change of ["fails", "hangs", "empty", "random"] as const) {
    const { path, named, pass } = await moving(["a"]);
    path.client().ask("GET", "/api/v1/pods?watch=true&resourceVersion=7", [bearer("t")]);
    path.settle();
    path.backend("a").last.side?.sendHeaders(ok, false);
    await pass(60);
    const lookups = named.lookups;
    for (let turn = 0; turn < 20; turn += 1) {
      const some = turn % 2 === 0 ? [next] : [`::ffff:${old}`, next];
      named.addresses = { fails: "fails", hangs: "hangs", empty: [], random: some }[
        change
      ] as typeof named.addresses;
      await pass(15);
    }
    assert.is(path.backend("a").asked.length, 1, `${change}: the watch stays on its connection`);
    if (change === "hangs") assert.is(named.lookups - lookups, 1);
    named.addresses = [old];
  }
});

test("while the new address cannot be dialled, the old connections serve on", async () => {
  const { path, named, pass } = await moving(["a"]);
  await pass(60);
  const backend = path.backend("a");
  named.addresses = [next];
  backend.isMute = true;
  await pass(90);
  assert.ok(openAt(path, "a", old) > 0);
});

test("with two backends, watches of an address that the name has lost move without an end", async () => {
  const { path, named, pass } = await moving(["a", "b"]);
  const watch = new PlayedWatch({ path });
  watch.serve(watch.from, "~8a");
  await pass(50);
  for (const backend of path.played.values()) backend.address = next;
  named.addresses = [next];
  await pass((upstreamLimits.nameLookMs * (upstreamLimits.nameAnswers + 4)) / 1000);
  const moved = [watch.from, watch.to].find(
    (one) => one.asked.length > 0 && one.last.request.path.includes("resourceVersion=8"),
  );
  if (moved === undefined) throw new Error("The watch did not move");
  watch.serve(moved, "~9a");
  watch.has("~8a ~9a");
});

test.run();
