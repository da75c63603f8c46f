import { suite } from "uvu";
import * as assert from "uvu/assert";
import { clientKinds } from "../../../src/ops/ledger/client-kind.ts";
import { urgencyOf } from "../../../src/ops/ledger/urgency.ts";

const test = suite("ops/ledger/urgency");

test("the watches of the control plane move first, then those of nodes, then all others", () => {
  assert.equal(
    clientKinds.map((kind) => `${kind} ${urgencyOf(kind)}`),
    ["node 1", "control-plane 0", "controller 2", "kubectl 2", "other 2"],
  );
});

test.run();
