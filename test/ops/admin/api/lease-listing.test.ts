import { suite } from "uvu";
import * as assert from "uvu/assert";
import { apiScene } from "../../../support/api-scene.ts";

const test = suite("ops/admin/api/lease-listing");

test("a lease is listed with its holder, and the caller and address that renew it", async () => {
  const { items } = apiScene();
  const [lease] = await items("leases");
  assert.equal([lease?.["holder"], lease?.["state"], lease?.["verdict"]], ["web-0_1", "held", "ok"]);
  const by = {
    client: "10.0.0.9",
    agent: "manager",
    clientKind: "controller",
    subject: "system:serviceaccount:n:web",
    subjectSource: "jwt",
  };
  assert.equal(lease?.["renewedBy"], { ...by, pod: "n/web-0", node: "" });
});

test("one that is not renewed any more has lapsed", async () => {
  const { items, path } = apiScene();
  path.clock.advance(15_001);
  const [lease] = await items("leases");
  assert.equal([lease?.["state"], lease?.["verdict"]], ["lapsed", "lapsed"]);
});

test.run();
