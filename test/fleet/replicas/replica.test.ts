import { suite } from "uvu";
import * as assert from "uvu/assert";
import { factsIn, replicaAnswer, replicaName } from "../../../src/fleet/replicas/replica.ts";
import { factsOf } from "../../support/replicas.ts";

const test = suite("fleet/replicas/replica");

test("what a replica says of itself is read as it was said", () => {
  const facts = factsOf(1, { clusters: ["eu", "us-1"], activeIncidents: 3, version: "0.1.0-rc.1+build" });
  assert.equal(factsIn(JSON.parse(JSON.stringify(replicaAnswer(facts)))), facts);
});

test("another server's answer, or one with a strange field, is refused whole", () => {
  const good = { ...replicaAnswer(factsOf(1)) };
  for (const bad of [
    undefined,
    null,
    "x",
    [],
    {},
    { kind: "Other" },
    { ...good, id: "x" },
    { ...good, id: `${factsOf(1).id}/..` },
    { ...good, version: "<script>" },
    { ...good, version: 1 },
    { ...good, startedAt: "yesterday" },
    { ...good, clusters: "x" },
    { ...good, clusters: ["ok", 7] },
    { ...good, clusters: ["UPPER"] },
    { ...good, clusters: Array.from({ length: 65 }, () => "c") },
    { ...good, activeIncidents: -1 },
    { ...good, activeIncidents: "1e9" },
  ])
    assert.is(factsIn(bad), undefined, JSON.stringify(bad));
  assert.is(factsIn({ ...good, name: "a b" })?.name, "");
});

test("a name is that of a host, and never an address with a port or a path", () => {
  for (const name of ["watchkeeper-7d9f-x2k4l", "cp-1.example.org", "A"]) assert.is(replicaName(name), name);
  for (const name of ["", "10.0.0.1:7480", "a/b", "..", "a%2fb", "a\nb", "x".repeat(300)])
    assert.is(replicaName(name), "", name);
});

test.run();
