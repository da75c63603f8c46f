import { suite } from "uvu";
import * as assert from "uvu/assert";
import { clientKindOf } from "../../../src/ops/ledger/client-kind.ts";
import { noSubject } from "../../../src/ops/ledger/subject.ts";

const test = suite("ops/ledger/client-kind");
const kindOf = (agent: string, name = ""): string => clientKindOf(agent, { ...noSubject, name });

test("the program decides first, because a controller-manager has the service accounts of its controllers", () => {
  assert.is(
    kindOf("kube-controller-manager", "system:serviceaccount:kube-system:job-controller"),
    "control-plane",
  );
  assert.is(kindOf("kube-proxy", "system:serviceaccount:kube-system:kube-proxy"), "node");
  assert.is(kindOf("kubectl", "system:serviceaccount:ci:deployer"), "kubectl");
});

test("the identity decides on programs that are not known", () => {
  assert.is(kindOf("Go-http-client", "system:node:worker-7"), "node");
  assert.is(kindOf("argocd", "system:serviceaccount:argocd:controller"), "controller");
  assert.is(kindOf("unknown", "system:apiserver"), "control-plane");
  assert.is(kindOf("curl", "alice"), "other");
  assert.is(kindOf("unknown"), "other");
});

test.run();
