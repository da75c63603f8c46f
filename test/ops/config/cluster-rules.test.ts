import { suite } from "uvu";
import * as assert from "uvu/assert";
import {
  backendBreaches,
  discoveryBreaches,
  fallbackBreaches,
  repeatedBackends,
  repeatedUrls,
} from "../../../src/ops/config/cluster-rules.ts";
import type { Placed } from "../../../src/ops/config/schema.ts";

const test = suite("config-cluster-rules");

const placed = (more: Partial<Placed["cluster"]>): Placed => ({
  pointer: "/clusters/3",
  cluster: {
    name: "eu",
    backends: [
      { name: "a", url: "https://10.0.0.1", weight: 1 },
      { name: "b", url: "https://10.0.0.2", weight: 1 },
    ],
    tls: { caFile: "ca.crt", reloadInterval: "10s" },
    avoidUnreachableAPIs: true,
    connectionPool: { maxStreamsPerConnection: 80, minIdleConnections: 1, perClient: false },
    shield: { enabled: true, queueTimeout: "15s", exemptGroups: ["system:masters"] },
    ...more,
  },
});

test("all backends of a cluster have the same path in their URL, and none with discovery", () => {
  const messages = (urls: readonly string[], more: Partial<Placed["cluster"]> = {}): string[] => {
    const backends = urls.map((url, at) => ({ name: `b${at}`, url, weight: 1 }));
    const written = { listeners: [] } as unknown as Parameters<typeof backendBreaches>[1];
    return backendBreaches(placed({ backends, ...more }), written).map(({ message }) => message);
  };
  assert.equal(messages(["https://r1.test/k8s/clusters/c-1", "https://r2.test/k8s/clusters/c-1/"]), []);
  assert.equal(messages(["https://r1.test/k8s/clusters/c-1", "https://r2.test/k8s/clusters/c-2"]), [
    'is "https://r2.test/k8s/clusters/c-2", but all backends of a cluster need the same path',
  ]);
  const discovery = { type: "DNS", hostname: "cp.test", interval: "10s" } as const;
  assert.equal(messages(["https://r1.test/c-1", "https://r2.test"], { discovery }), [
    'is "https://r1.test/c-1", but discovery takes no path',
  ]);
});

test("what is wrong with one of several clusters is told where it stands", () => {
  const twice = [
    { name: "a", url: "https://10.0.0.1", weight: 1 },
    { name: "a", url: "https://10.0.0.1:443", weight: 1 },
  ];
  assert.equal(repeatedUrls(placed({ backends: twice })), [
    {
      pointer: "/clusters/3/backends/1/url",
      message: 'is "https://10.0.0.1:443", which is already the URL of backend "a"',
    },
  ]);
  assert.is(repeatedBackends(placed({ backends: twice }))[0]?.pointer, "/clusters/3/backends/1/name");
  const fallback = { name: "a", url: "https://10.0.0.9", weight: 1 };
  const discovery = { type: "File", interval: "30s", fallback } as const;
  assert.is(fallbackBreaches(placed({ discovery }))[0]?.pointer, "/clusters/3/discovery/fallback/name");
  assert.equal(discoveryBreaches(placed({ discovery })), [
    { pointer: "/clusters/3/discovery/file", message: 'is missing: discovery of type "File" needs it' },
  ]);
});

test("a sound one has no breach", () => {
  const one = placed({});
  for (const rule of [repeatedUrls, repeatedBackends, fallbackBreaches, discoveryBreaches])
    assert.equal(rule(one), []);
});

test.run();
