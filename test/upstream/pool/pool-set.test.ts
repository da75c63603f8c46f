import { suite } from "uvu";
import * as assert from "uvu/assert";
import { upstreamLimits } from "../../../src/upstream/pool/limits.ts";
import { poolKey } from "../../../src/upstream/pool/pool-key.ts";
import { bearer, PlayedPath } from "../../support/path.ts";

const test = suite("upstream/pool/pool-set");

test("a backend that goes loses its upstream connections when their streams are done; the others are not touched", () => {
  const path = new PlayedPath(["a", "b"]);
  const [one, two] = [path.client(), path.client()];
  const ears = [one, two].map((client) => {
    const ear = client.ask("GET", "/api/v1/pods?watch=1", [bearer("t")]);
    path.settle();
    return ear;
  });
  path.backends.reconcile(["b"]);
  path.pools.reconcile(["b"]);
  path.settle();
  path.backend("a").last.answer(200, "from a");
  path.backend("b").last.answer(200, "from b");
  path.settle();
  assert.equal(ears.map((ear) => ear.body).toSorted(), ["from a", "from b"]);
  assert.is(path.pools.poolOf("a"), undefined);
  assert.ok(path.backend("a").sessions.every(({ session }) => session.isOver));
});

test("shared keys are one object each, private ones name their client", () => {
  const shared = new PlayedPath(["a"]).pools;
  const { client } = new PlayedPath(["a"]).client().downstream;
  const wanted = { trust: "proven", kind: "plain" } as const;
  assert.is(shared.keyFor(wanted, client), shared.keyFor(wanted, client));
  const { pools } = new PlayedPath(["a"], { isPerClient: true });
  assert.equal(pools.keyFor(wanted, client), {
    trust: "private",
    kind: "plain",
    owner: "1",
    name: "private plain 1",
  });
});

test("an upstream connection whose PING has waited for longer than a tenth of a second is not prompt, and is again when it is answered", () => {
  const path = new PlayedPath(["a"]);
  path.clock.advance(250);
  const key = poolKey("proven", "plain");
  const isThere = (): boolean => path.pools.promptConnection("a", key) !== undefined;
  assert.ok(isThere());
  const releases = path.backend("a").sessions.map(({ cable }) => cable.hold());
  path.clock.advance(250 + upstreamLimits.promptMs);
  assert.ok(isThere());
  path.clock.advance(1);
  assert.not(isThere());
  assert.ok(path.pools.poolOf("a")?.take(key) !== undefined, "it is not suspect yet");
  for (const release of releases) release();
  path.clock.advance(1);
  assert.ok(isThere());
});

test.run();
