import { suite } from "uvu";
import * as assert from "uvu/assert";
import { errorCode } from "../../../src/h2/core/protocol-error.ts";
import type { Exchange } from "../../../src/proxy/request/exchange.ts";
import { bearer, PlayedPath } from "../../support/path.ts";
import { ok } from "../../support/watch-path.ts";

const test = suite("proxy/request/exchange-states");

/** Starts one exchange. */
function begun(path: PlayedPath, method: string, target: string, end = true) {
  const client = path.client();
  const ear = client.ask(method, target, [bearer("t")], end);
  path.settle();
  const [exchange] = path.exchanges.live;
  assert.ok(exchange !== undefined);
  return { path, ear, exchange };
}

/** Returns the exchange's own printed form, without its Audit-ID. */
const told = (exchange: Exchange): string => exchange.toString().replace(exchange.context.auditId, "ID");

test("a request waits in placing, is in asking until the answer's head, then relaying, then ended", () => {
  const path = new PlayedPath(["a"], { down: ["a"] });
  const { ear, exchange } = begun(path, "GET", "/api/v1/pods");
  assert.is(told(exchange), "list ID placing 0 ");
  path.backend("a").isDown = false;
  path.clock.advance(3_000);
  assert.is(told(exchange), "list ID asking 0 a");
  const { side } = path.backend("a").last;
  side?.sendHeaders(ok, false);
  side?.sendData(Buffer.from("x"), 0, 1, false);
  path.settle();
  assert.is(told(exchange), "list ID asking 0 a", "the body is held");
  path.clock.advance(2_000);
  assert.is(told(exchange), "list ID relaying 200 a");
  path.backend("a").last.say("y", true);
  path.settle();
  assert.equal([exchange.state, ear.body, ear.isEnded], ["ended", "xy", true]);
});

test("a request that was lost is placed again, and asks the next backend", () => {
  const path = new PlayedPath(["a", "b"]);
  const { exchange } = begun(path, "GET", "/api/v1/pods");
  const first = exchange.backend;
  const other = first === "a" ? "b" : "a";
  const states: string[] = [];
  // The exchange's state while its next attempt is being dialled.
  path.client().ask("GET", "/other", [bearer("t")]);
  path.settle();
  path.backend(other).kill();
  path.settle();
  path.backend(first).kill();
  path.settle();
  states.push(exchange.state);
  for (const name of [first, other]) path.backend(name).isDown = false;
  path.clock.advance(3_000);
  states.push(exchange.state);
  assert.equal(states, ["placing", "asking"]);
});

test("an answer that is whole before the request's body is in finishing until the client has sent all", () => {
  const { path, ear, exchange } = begun(new PlayedPath(["a"]), "POST", "/api/v1/pods", false);
  path.backend("a").last.answer(201);
  path.settle();
  assert.equal([exchange.state, exchange.status], ["finishing", 201]);
  ear.say("the rest", true);
  path.settle();
  assert.is(exchange.state, "ended");
});

test("a watch is handed to its session, which ends it", () => {
  const { path, exchange } = begun(new PlayedPath(["a"]), "GET", "/api/v1/pods?watch=true&resourceVersion=7");
  path.backend("a").last.side?.sendHeaders(ok, false);
  path.settle();
  assert.is(told(exchange), "watch ID watching 200 a");
  exchange.letWatchEnd();
  path.clock.advance(60_000);
  assert.is(exchange.state, "ended");
});

test("a client that gives up ends it in any state", () => {
  const { path, ear, exchange } = begun(new PlayedPath(["a"]), "GET", "/api/v1/pods");
  ear.stream.reset(errorCode.CANCEL);
  path.settle();
  assert.equal([exchange.state, path.exchanges.size], ["ended", 0]);
});

test.run();
