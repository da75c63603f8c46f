import { suite } from "uvu";
import * as assert from "uvu/assert";
import { isLocalHost } from "../../../../src/ops/admin/http/local-host.ts";

const test = suite("ops/admin/http/local-host");

test("this machine's names for itself, with and without a port", () => {
  for (const host of ["localhost", "LOCALHOST:7480", "127.0.0.1", "127.0.0.1:7480", "[::1]", "[::1]:7480"])
    assert.ok(isLocalHost(host), host);
});

test("any other name may lead here only today (A56)", () => {
  for (const host of [
    "",
    "evil.example",
    "localhost.evil.example",
    "127.0.0.1.evil.example:7480",
    "10.0.0.1",
    "::1",
    "[::1",
    "localhost:x",
    "a@localhost",
    "[]:1",
  ])
    assert.not(isLocalHost(host), host);
});

test.run();
