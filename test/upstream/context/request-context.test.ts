import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import { Field } from "../../../src/h2/core/field.ts";
import {
  clientKey,
  isFreshRead,
  isRepeatable,
  longHeadBytes,
  userAgentOf,
} from "../../../src/upstream/context/request-context.ts";
import { orderOf } from "../../support/attempt-owner.ts";

const test = suite("upstream/context/request-context");

test("a GET or HEAD without a body may be asked twice, a watch too; a write or what may act never (watch.md §10)", () => {
  for (const method of ["GET", "HEAD"]) {
    assert.ok(isRepeatable(orderOf({ method })));
    assert.ok(isRepeatable(orderOf({ method, kind: "watch" })));
    assert.not.ok(isRepeatable(orderOf({ method, kind: "long-running" })));
    assert.not.ok(isRepeatable(orderOf({ method, isBodiless: false })));
  }
  for (const method of ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "get"])
    assert.not.ok(isRepeatable(orderOf({ method })), method);
});

test("a read of one object asks etcd unless it names a version: then a cache may answer", () => {
  const isFresh = (path: string, isObjectRead = true): boolean =>
    isFreshRead(orderOf({ isObjectRead, fields: [new Field(":path", path)] }));
  assert.ok(isFresh("/api/v1/namespaces/n/pods/p"));
  assert.ok(isFresh("/api/v1/namespaces/n/pods/p?pretty=true"));
  assert.not(isFresh("/api/v1/namespaces/n/pods/p?resourceVersion=0"));
  assert.not(isFresh("/api/v1/namespaces/n/pods", false));
});

test("a head of usual length waits for nothing; of a longer one all counts (A26)", () => {
  const of = (bytes: number): number => longHeadBytes([new Field("x", "y".repeat(bytes - 33))]);
  assert.is(of(limits.usualHeadBytes), 0);
  assert.is(of(limits.usualHeadBytes + 1), limits.usualHeadBytes + 1);
});

const agent = (value: string): Field[] => [new Field("user-agent", value)];

test("a client is its address and its User-Agent", () => {
  assert.is(clientKey({ address: "192.0.2.1" }, agent("kubelet/v1.36")), "192.0.2.1 kubelet/v1.36");
  assert.is(clientKey({ address: "192.0.2.1" }, []), "192.0.2.1 ");
});

test("a User-Agent is kept up to its limit", () => {
  assert.is(userAgentOf(agent("a".repeat(limits.userAgentChars + 1))).length, limits.userAgentChars);
});

test.run();
