import { suite } from "uvu";
import * as assert from "uvu/assert";
import { callerView } from "../../../src/admin/api/caller-view.ts";
import { callerAt } from "../../support/callers.ts";

const test = suite("admin/api/caller-view");

test("who asks, as far as is known, and how it is known", () => {
  const subject = { name: "system:serviceaccount:n:web", namespace: "n", pod: "web-0", node: "n7" };
  assert.equal(callerView(callerAt("10.0.0.7", subject)), {
    client: "10.0.0.7",
    agent: "manager",
    subject: "system:serviceaccount:n:web",
    subjectSource: "jwt",
    pod: "n/web-0",
    node: "n7",
  });
  assert.is(callerView(callerAt("10.0.0.7")).pod, "");
});

test.run();
