import { suite } from "uvu";
import * as assert from "uvu/assert";
import { PlayedPath } from "../../support/path.ts";
import { PlayedWatch } from "../../support/watch-path.ts";

const test = suite("watch-sessions");

test("watches are found by their resource, those that see all of it apart, until they are over", () => {
  const path = new PlayedPath(["a", "b"]);
  const { watches } = path.migrations;
  const whole = new PlayedWatch({ path });
  whole.serve(whole.from);
  const part = new PlayedWatch({ path, resource: "/api/v1/namespaces/n/configmaps" });
  part.serve(part.from);
  const pods = new PlayedWatch({ path, resource: "/api/v1/pods" });
  pods.serve(pods.from);
  assert.equal(Array.from(watches.resources), ["/configmaps", "/pods"]);
  assert.equal([watches.wholeOf("/configmaps").size, watches.partOf("/configmaps").size], [1, 1]);
  assert.is(Array.from(watches.of("/configmaps")).length, 2);
  for (const { ear } of [whole, part]) ear.stream.reset(8);
  path.settle();
  assert.equal(Array.from(watches.resources), ["/pods"]);
  assert.equal(Array.from(watches.of("/configmaps")), []);
});

test("another server's resource is not among them: its versions mean nothing here", () => {
  const path = new PlayedPath(["a", "b"]);
  const foreign = new PlayedWatch({ path, resource: "/apis/metrics.k8s.io/v1beta1/pods" });
  foreign.serve(foreign.from);
  assert.equal(Array.from(path.migrations.watches.resources), []);
});

test.run();
