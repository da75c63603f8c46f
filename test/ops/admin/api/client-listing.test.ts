import { suite } from "uvu";
import * as assert from "uvu/assert";
import { apiScene } from "../../../support/api-scene.ts";

const test = suite("ops/admin/api/client-listing");

test("a client is listed with what it has asked for", async () => {
  const { items } = apiScene();
  const [client] = await items("clients");
  assert.equal([client?.["requests"], client?.["watches"], client?.["active"]], [2, 1, 1]);
  assert.equal(client?.["anomalies"], []);
});

test.run();
