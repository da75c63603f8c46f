/**
 * What the client receives if the proxy ends its request. The proxy may say "not processed" only if no part of the
 * request has been sent to a backend (D17).
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Field } from "../../src/h2/core/field.ts";
import { errorCode } from "../../src/h2/core/protocol-error.ts";
import { bearer, PlayedPath } from "../support/path.ts";

const test = suite("flows/cut");

const object = "/api/v1/namespaces/n/configmaps/c";
const collection = "/api/v1/namespaces/n/configmaps";
const execution = "/api/v1/namespaces/n/pods/p/exec?command=ls";

type Ear = ReturnType<ReturnType<PlayedPath["client"]>["ask"]>;

/** The result for the client: the status, whether it may repeat the request, and the code of a reset. */
function told(ear: Ear): readonly [status: string, mayRepeat: boolean, reset: number | undefined] {
  const mayRepeat = ear.heads.at(-1)?.some(({ name }) => name === "retry-after") === true;
  return [ear.status, mayRepeat, ear.resetCode];
}

const unknown = ["504", false, undefined] as const;
const again = ["503", true, undefined] as const;
const unsent = ["", false, errorCode.REFUSED_STREAM] as const;

/** The components that end requests. */
const callers: Readonly<Record<string, (path: PlayedPath) => void>> = {
  "drain or overload": (path) => {
    for (const exchange of path.exchanges.live) exchange.cut();
  },
  "a cluster that goes": (path) => path.close(),
  relief: (path) => {
    for (const exchange of path.exchanges.live)
      Object.defineProperty(exchange, "queuedBytes", { get: () => 1, configurable: true });
    path.buffered.add(2 * 64 * 1024 * 1024);
  },
  "a fault of the proxy": (path) => {
    for (const exchange of path.exchanges.live) exchange.attemptFaulted(new Error("bug"));
  },
};

for (const [caller, cut] of Object.entries(callers)) {
  test(`a request that was sent has an unknown outcome, and a safe one may be asked again: ${caller}`, () => {
    for (const [method, target, expected] of [
      ["POST", collection, unknown],
      ["PUT", object, unknown],
      ["DELETE", object, unknown],
      ["GET", execution, unknown],
      ["GET", object, again],
      ["HEAD", object, again],
      ["GET", `${collection}?watch=true`, again],
    ] as const) {
      const path = new PlayedPath(["a"]);
      const ear = path.client().ask(method, target, [bearer("t")]);
      path.settle();
      const { last } = path.backend("a");
      cut(path);
      path.settle();
      assert.equal(told(ear), expected, `${method} ${target}`);
      assert.is(ear.isEnded, true);
      assert.is(last.resetCode, errorCode.CANCEL);
      assert.is(path.exchanges.size, 0);
    }
  });
}

test("the connection of an HTTP/1.1 request that is cut ends behind its answer", () => {
  const path = new PlayedPath(["a"]);
  const ear = path.client().ask("GET", object, [bearer("t")]);
  path.settle();
  const order: string[] = [];
  for (const exchange of path.exchanges.live) {
    exchange.down.closeAfter = () => order.push(`close, answered ${ear.status}`);
    exchange.cut();
  }
  path.settle();
  assert.equal(order, ["close, answered "]);
  assert.is(ear.status, "503");
});

test("an upload that is cut is stopped behind its answer", () => {
  const path = new PlayedPath(["a"]);
  const ear = path.client().ask("POST", collection, [bearer("t")], false);
  ear.say("half");
  path.settle();
  for (const exchange of path.exchanges.live) exchange.cut();
  path.settle();
  assert.equal(told(ear), ["504", false, errorCode.NO_ERROR]);
  const { kind, code, reason } = JSON.parse(ear.body);
  assert.equal([kind, code, reason], ["Status", 504, "Timeout"]);
});

test("what has not left may be sent again by its client: it waits for a backend, or for an upstream connection", () => {
  for (const names of [[], ["a"]]) {
    const path = new PlayedPath(names, { warm: 0 });
    if (names.length > 0) path.backend("a").isMute = true;
    const ear = path.client().ask("POST", collection, [bearer("t")]);
    path.settle();
    for (const exchange of path.exchanges.live) exchange.cut();
    path.settle();
    assert.equal(told(ear), unsent);
  }
});

test("what a backend has refused unprocessed has not left; what an earlier one may have begun with has", () => {
  for (const [method, end, expected] of [
    ["POST", "refuse", unsent],
    ["GET", "refuse", unsent],
    ["GET", "kill", again],
  ] as const) {
    const path = new PlayedPath(["a"]);
    const ear = path.client().ask(method, object, [bearer("t")]);
    path.settle();
    path.backend("a").isDown = true;
    if (end === "kill") path.backend("a").kill();
    else
      path
        .backend("a")
        .sessions.forEach(({ session }) => session.streams[0]?.reset(errorCode.REFUSED_STREAM));
    path.backend("a").sessions.forEach(({ session }) => session.goAway());
    path.settle();
    assert.equal(told(ear), ["", false, undefined], "it waits");
    for (const exchange of path.exchanges.live) exchange.cut();
    path.settle();
    assert.equal(told(ear), expected, `${method} ${end}`);
  }
});

test("of two that were asked one is enough", () => {
  const path = new PlayedPath(["a", "b"]);
  const ear = path.client().ask("GET", object, [bearer("t")]);
  path.settle();
  const [first] = [path.backend("a"), path.backend("b")].filter(({ asked }) => asked.length > 0);
  first?.blackHole();
  path.clock.advance(900);
  const other = first === path.backend("a") ? path.backend("b") : path.backend("a");
  other.last.side?.reset(errorCode.REFUSED_STREAM);
  path.settle();
  for (const exchange of path.exchanges.live) exchange.cut();
  path.settle();
  assert.equal(told(ear), again);
});

test("a code after which Go's transport sends a write again is not passed on (golang/go 47635)", () => {
  const path = new PlayedPath(["a"]);
  const ends = [
    ["504", () => path.backend("a").last.side?.reset(errorCode.PROTOCOL_ERROR)],
    ["502", () => path.backend("a").last.side?.sendHeaders([new Field(":status", "20")], true)],
  ] as const;
  for (const [status, end] of ends) {
    const write = path.client().ask("POST", collection, [bearer("t")]);
    path.settle();
    end();
    path.settle();
    assert.equal(told(write), [status, false, undefined]);
  }
  const read = path.client().ask("GET", object, [bearer("t")]);
  path.settle();
  path.backend("a").last.side?.reset(errorCode.PROTOCOL_ERROR);
  path.settle();
  assert.is(read.resetCode, errorCode.PROTOCOL_ERROR);
});

test("a fault while a request is placed ends what was sent of it", () => {
  const path = new PlayedPath(["a"]);
  const ear = path.client().ask("POST", collection, [bearer("t")]);
  const { poolOf } = path.pools;
  Object.assign(path.pools, {
    poolOf(name: string) {
      const connections = poolOf.call(path.pools, name);
      return connections === undefined
        ? undefined
        : Object.assign(Object.create(connections), {
            take() {
              throw new Error("bug");
            },
          });
    },
  });
  path.settle();
  assert.equal(told(ear), unsent);
  assert.is(path.exchanges.size, 0);
  assert.ok(path.entries.some(({ kind }) => kind === "internal.error"));
});

test.run();
