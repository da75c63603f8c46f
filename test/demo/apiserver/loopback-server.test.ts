import { createServer } from "node:net";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { bindLoopback } from "../../../demo/apiserver/loopback-server.ts";
import { Failure } from "../../../src/base/failure.ts";

const test = suite("demo/apiserver/loopback-server");

test("a server gets a free port, and one that is taken is a failure", async () => {
  const [first, second] = [createServer(), createServer()];
  const port = await bindLoopback(first);
  assert.ok(typeof port === "number" && port > 0);
  const taken = await bindLoopback(second, port);
  assert.instance(taken, Failure);
  assert.match((taken as Failure).message, "EADDRINUSE");
  first.close();
});

test.run();
