import { suite } from "uvu";
import * as assert from "uvu/assert";
import { apiScene } from "../../support/api-scene.ts";

const test = suite("admin/api/watch-listing");

test("a watch is listed with its client, its backend and where it has been", async () => {
  const { items } = apiScene();
  const [watch, ...rest] = await items("watches");
  assert.is(rest.length, 0);
  const { client, agent, subject, pod, resource, state, session, resourceVersion, moves, backend, events } =
    watch ?? {};
  assert.equal(
    [client, agent, subject, pod],
    ["10.0.0.9", "manager", "system:serviceaccount:n:web", "n/web-0"],
  );
  assert.equal([resource, state, session], ["/configmaps", "live", "streaming"]);
  assert.equal([resourceVersion, moves, events], ["9", 1, 2]);
  assert.ok(backend === "a" || backend === "b");
});

test.run();
