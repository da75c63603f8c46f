import { suite } from "uvu";
import * as assert from "uvu/assert";
import { apiScene } from "../../support/api-scene.ts";

const test = suite("admin/api/lock-listing");

test("a lock is listed with its holder, and who renews it from where", () => {
  const { items } = apiScene();
  const [lock] = items("locks");
  assert.equal([lock?.["holder"], lock?.["state"], lock?.["verdict"]], ["web-0_1", "held", "ok"]);
  const by = {
    client: "10.0.0.9",
    agent: "manager",
    subject: "system:serviceaccount:n:web",
    subjectSource: "jwt",
  };
  assert.equal(lock?.["renewedBy"], { ...by, pod: "n/web-0", node: "" });
});

test("one that nobody renews any more has lapsed", () => {
  const { items, path } = apiScene();
  path.clock.advance(15_001);
  assert.is(items("locks")[0]?.["state"], "lapsed");
});

test.run();
