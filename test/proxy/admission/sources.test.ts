import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Sources } from "../../../src/proxy/admission/sources.ts";

const test = suite("proxy/admission/sources");

test("an address has its number, and others are not felt by it", () => {
  const sources = new Sources(2);
  assert.equal([sources.take("10.0.0.1"), sources.take("10.0.0.1")], [true, true]);
  assert.is(sources.take("10.0.0.1"), false);
  assert.ok(sources.take("10.0.0.2"));
  sources.leave("10.0.0.1");
  assert.ok(sources.take("10.0.0.1"));
  assert.is(sources.take("10.0.0.1"), false);
});

test("the address with the most sockets is known as a share of the limit", () => {
  const sources = new Sources(4);
  assert.is(sources.fullestShare, 0);
  sources.take("10.0.0.1");
  for (let count = 0; count < 3; count += 1) sources.take("10.0.0.2");
  assert.is(sources.fullestShare, 0.75);
  sources.leave("10.0.0.2");
  assert.is(sources.fullestShare, 0.5);
});

test("IPv6 hosts have a /64 each", () => {
  const sources = new Sources(1);
  assert.ok(sources.take("2001:db8::1"));
  assert.is(sources.take("2001:db8:0:0:ffff::9"), false);
  assert.ok(sources.take("2001:db8:0:1::1"));
});

test("nothing is kept of clients that have left", () => {
  const sources = new Sources(10);
  const addresses = Array.from({ length: 1000 }, (_, at) => `10.0.${at >> 8}.${at & 0xff}`);
  for (const address of addresses) sources.take(address);
  assert.is(sources.size, 1000);
  for (const address of addresses) sources.leave(address);
  assert.is(sources.size, 0);
});

test.run();
