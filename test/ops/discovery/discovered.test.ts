import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../../src/base/failure.ts";
import { limits } from "../../../src/base/limits.ts";
import { checkFound, type Discovered, foundAt, foundInFile } from "../../../src/ops/discovery/discovered.ts";

const test = suite("ops/discovery/discovered");

/** Returns the names of the discovered backends, or the message of the failure. */
function told(outcome: readonly Discovered[] | Failure | undefined): readonly string[] | string | undefined {
  return outcome instanceof Failure ? outcome.message : outcome?.map(({ name }) => name);
}

test("each address counts once, in an order that does not depend on the answer's", () => {
  const some = [foundAt("10.0.0.2", 6443), foundAt("fd00::1", 6443), foundAt("10.0.0.1", 6443)];
  const names = ["10.0.0.1:6443", "10.0.0.2:6443", "[fd00::1]:6443"];
  assert.equal(told(checkFound([...some, ...some])), names);
  assert.equal(told(checkFound(some.toReversed())), names);
});

test("an answer without backends, or with too many, is no answer (F21)", () => {
  assert.is(told(checkFound([])), "Discovered no backends at all");
  const many = Array.from({ length: limits.discoveredBackends + 1 }, (_, index) =>
    foundAt(`10.0.1.${index}`, 1),
  );
  assert.is(told(checkFound(many)), "Discovered 65 backends, more than 64");
  assert.is(checkFound(many.slice(1)) instanceof Failure, false);
});

test("one address that cannot be a backend's spoils the answer", () => {
  for (const [host, port] of [
    ["0.0.0.0", 6443],
    ["169.254.169.254", 80],
    ["ff02::1", 6443],
    ["10.0.0.1", 0],
    ["10.0.0.1", 65_536],
    ["10.0.0.1", 1.5],
    ["no host", 6443],
  ] as const)
    assert.match(
      String(told(checkFound([foundAt("10.0.0.9", 1), foundAt(host, port)]))),
      "not a backend's address",
    );
  const open: Discovered = { name: "x", host: "10.0.0.1", port: 80, isEncrypted: false };
  assert.match(String(told(checkFound([open]))), "not a backend's address");
  assert.equal(told(checkFound([{ ...open, host: "127.0.0.1" }])), ["x"]);
});

test("the zone of an endpoint is kept, and what is no zone is ignored", () => {
  assert.is(foundAt("10.0.0.1", 1, "eu-1a").zone, "eu-1a");
  for (const zone of ["", "a b", "-a", "x".repeat(64)])
    assert.is(foundAt("10.0.0.1", 1, zone).zone, undefined);
});

test("a file lists names and URLs, in YAML or JSON", () => {
  const yaml = "- {name: cp-1, url: 'https://10.0.0.1:6443'}\n- {name: cp-2, url: 'https://cp-2.test'}\n";
  assert.equal(foundInFile(yaml, "f"), [
    { name: "cp-1", host: "10.0.0.1", port: 6443, isEncrypted: true },
    { name: "cp-2", host: "cp-2.test", port: 443, isEncrypted: true },
  ]);
  const zoned = "- {name: cp-1, url: 'https://10.0.0.1:6443', weight: 3, zone: eu-1a}\n";
  assert.equal(foundInFile(zoned, "f"), [
    { name: "cp-1", host: "10.0.0.1", port: 6443, isEncrypted: true, weight: 3, zone: "eu-1a" },
  ]);
  const json = '[{"name": "a", "url": "https://[fd00::1]:1"}]';
  assert.equal(told(foundInFile(json, "f")), ["a"]);
});

test("a file that is anything else says where it is wrong", () => {
  for (const [text, complaint] of [
    ["", "f:1:1: is empty"],
    ["a: 1", "f is not a list of {name, url}"],
    ["- {name: a, url: 'https://h'}\n- {name: B, url: 'https://h'}", "f:2:3: "],
    ["- {name: a, url: 'https://h/path'}", "f:1:3: "],
    ["- {name: a, url: 'https://h', weight: 0}", "f:1:3: "],
    ["- {name: a, url: 'https://h', weight: 257}", "f:1:3: "],
    ["- {name: a, url: 'https://h', weight: 1.5}", "f:1:3: "],
    ["- {name: a, url: 'https://h', weight: '2'}", "f:1:3: "],
    ["- {name: a, url: 'https://h', zone: 'a b'}", "f:1:3: "],
    ["- {name: a, url: 'https://h', color: red}", "f:1:3: "],
    ["- https://10.0.0.1", "f:1:3: "],
    ["- [", "is not YAML"],
  ] as const)
    assert.match(String(told(foundInFile(text, "f"))), complaint, text);
  const twice = foundInFile("- {name: a, url: 'https://h'}\n- {name: a, url: 'https://i'}", "f");
  assert.is(told(checkFound(twice instanceof Failure ? [] : twice)), "Discovered two backends with one name");
});

test.run();
