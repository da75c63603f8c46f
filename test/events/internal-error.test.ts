import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Exchange } from "../../src/proxy/request/exchange.ts";
import { bearer, PlayedPath } from "../support/path.ts";
import { ok } from "../support/watch-path.ts";

const test = suite("events/internal-error");

test("a fault in one exchange costs that exchange: the upstream connection and its other streams go on (D10)", () => {
  const path = new PlayedPath(["a"]);
  const client = path.client();
  const [struck, bystander] = ["/struck", "/bystander"].map((target) =>
    client.ask("GET", target, [bearer("t")]),
  );
  path.settle();
  const [first, second] = path.backend("a").asked;
  const original = Exchange.prototype.attemptHeaders;
  Exchange.prototype.attemptHeaders = () => {
    throw new Error("a bug");
  };
  first?.answer(200, "never seen");
  path.settle();
  Exchange.prototype.attemptHeaders = original;
  second?.answer(200, "fine");
  path.settle();
  assert.is.not(struck?.resetCode ?? struck?.status, undefined);
  assert.not.match(struck?.body ?? "", "never seen");
  assert.is(bystander?.body, "fine");
  assert.equal([path.exchanges.size, client.isGone], [0, false]);
  const faults = path.entries.filter((entry) => entry.kind === "internal.error");
  assert.equal(faults, [{ kind: "internal.error", scope: "stream", message: "a bug" }]);
});

const stateOf = (path: PlayedPath, name: string): string | undefined =>
  path.backends.views.find((view) => view.name === name)?.state;

test("a fault in one beat of PINGs is not the last beat: a hole is found as soon as ever", () => {
  const path = new PlayedPath(["a", "b"], { isProbed: true });
  path.clock.advance(1_000);
  const [connection] = path.pools.poolOf("a")?.shards.flatMap(({ connections }) => connections) ?? [];
  assert.ok(connection !== undefined);
  const tick = connection.tick.bind(connection);
  connection.tick = () => {
    connection.tick = tick;
    throw new Error("a bug");
  };
  path.clock.advance(1_000);
  assert.is(path.entries.filter(({ kind }) => kind === "internal.error").length, 1);
  path.backend("a").blackHole();
  path.clock.advance(1_000);
  assert.is(stateOf(path, "a"), "suspect");
  path.clock.advance(2_000);
  assert.is(stateOf(path, "a"), "dead");
});

test("a fault in one probe is not the last probe", () => {
  const path = new PlayedPath(["a", "b"], { isProbed: true });
  path.clock.advance(1_500);
  const a = path.backend("a");
  const probe = a.probe.bind(a);
  a.probe = () => {
    a.probe = probe;
    throw new Error("a bug");
  };
  path.clock.advance(3_000);
  a.readyz = "failing";
  path.clock.advance(3_000);
  assert.is(stateOf(path, "a"), "suspect");
});

test("a watch whose look has a fault hides none of those behind it", () => {
  const path = new PlayedPath(["a"]);
  const client = path.client();
  const ears = ["pods", "nodes"].map((name) =>
    client.ask("GET", `/api/v1/${name}?watch=true&resourceVersion=7&timeoutSeconds=5`, [bearer("t")]),
  );
  path.settle();
  for (const asked of path.backend("a").asked) asked.side?.sendHeaders(ok, false);
  path.settle();
  const [first] = path.exchanges.live;
  if (first?.watch !== undefined)
    first.watch.look = () => {
      throw new Error("a bug");
    };
  path.clock.advance(20_000);
  assert.is(ears[1]?.isEnded, true, "the other one is told that its time is over");
});

test.run();
