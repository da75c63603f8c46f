import { suite } from "uvu";
import * as assert from "uvu/assert";
import { clusterOf } from "../../../src/ops/config/cluster.ts";

const test = suite("config-cluster");

const connectionPool = { maxStreamsPerConnection: 80, minIdleConnections: 1, perClient: false };
const shield = { enabled: true, queueTimeout: "15s", exemptGroups: ["system:masters"] };
const least = { name: "x", connectionPool, shield, avoidUnreachableAPIs: true } as const;

test("a key that is not set is reported as such, and paths start at the file", () => {
  assert.equal(
    clusterOf({ ...least }, (path) => `/etc/${path}`),
    {
      name: "x",
      backends: [],
      discovery: undefined,
      tls: undefined,
      connectionPool,
      avoidUnreachableAPIs: true,
      proxyProtocol: undefined,
      pathPrefix: "",
      limits: [],
      shield: { isEnabled: true, queueMs: 15_000, exemptGroups: ["system:masters"] },
    },
  );
  const written = {
    ...least,
    name: "eu",
    backends: [{ name: "a", url: "https://[fd00::1]", weight: 1 }],
    tls: { caFile: "ca.crt", reloadInterval: "2s" },
    proxyProtocol: { version: "V2" },
  } as const;
  const { name, backends, tls, proxyProtocol } = clusterOf(written, (path) => `/etc/${path}`);
  assert.equal([name, proxyProtocol, tls?.caFile, tls?.reloadIntervalMs], ["eu", "V2", "/etc/ca.crt", 2000]);
  assert.equal(backends, [
    { name: "a", url: "https://[fd00::1]", host: "fd00::1", port: 443, isEncrypted: true },
  ]);
});

test.run();
