import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import { agentOf } from "../../../src/proxy/observe/ledger-tap.ts";

const test = suite("proxy/observe/agent");

test("versions, platforms and commits go, the program stays", () => {
  for (const [userAgent, agent] of [
    ["kubelet/v1.36.1 (linux/amd64) kubernetes/abc", "kubelet"],
    ["kube-scheduler/v1.36.1 (linux/amd64) kubernetes/abc/leader-election", "kube-scheduler/leader-election"],
    ["Go-http-client/2.0", "Go-http-client"],
    ["curl", "curl"],
    ["", "unknown"],
    ["(x)", "unknown"],
    ["a\u00e9$b/1", "a__b"],
  ] as const)
    assert.is(agentOf(userAgent), agent);
  assert.is(agentOf("x".repeat(1000)).length, limits.agentChars);
});

test("of a name of 64 KiB no more than its beginning is kept", () => {
  assert.is(agentOf("x".repeat(65_536)).length, limits.agentChars);
  assert.is(
    agentOf(`${"x".repeat(65_536)}/leader-election`),
    `${"x".repeat(limits.agentChars)}/leader-election`,
  );
});

test.run();
