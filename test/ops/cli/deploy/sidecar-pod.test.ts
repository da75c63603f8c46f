import { suite } from "uvu";
import * as assert from "uvu/assert";
import {
  clientMounts,
  podVolumes,
  sidecarContainer,
  usual,
} from "../../../../src/ops/cli/deploy/sidecar-shape.ts";

const test = suite("ops/cli/deploy/sidecar-pod");

const text = (port: number = usual.port, metricsPort: number = usual.metricsPort): string =>
  JSON.stringify(sidecarContainer({ image: "w", port, metricsPort }));

test("only ports that are not the usual ones are told to the sidecar", () => {
  assert.match(text(), '"args":["sidecar"]');
  assert.match(text(8000, 8001), '"args":["sidecar","--port","8000","--metrics-port","8001"]');
  assert.match(text(usual.port, 8001), '"startupProbe":{"httpGet":{"path":"/livez","port":8001}');
});

test("every mount has its volume, and the sidecar mounts each where it looks by itself", () => {
  const names = podVolumes.map(({ name }) => name);
  for (const { name } of clientMounts) assert.ok(names.includes(name), name);
  for (const path of [usual.shared, usual.direct, usual.state]) assert.match(text(), `"mountPath":"${path}"`);
});

test.run();
