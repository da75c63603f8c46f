import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { Placed } from "../../src/config/schema.ts";
import {
  discoveryBreaches,
  fallbackBreaches,
  repeatedBackends,
  repeatedUrls,
} from "../../src/config/upstream-rules.ts";

const test = suite("config-upstream-rules");

const placed = (more: Partial<Placed["upstream"]>): Placed => ({
  pointer: "/upstreams/3",
  upstream: {
    name: "eu",
    backends: [
      { name: "a", url: "https://10.0.0.1" },
      { name: "b", url: "https://10.0.0.2" },
    ],
    tls: { caFile: "ca.crt", reloadInterval: "10s" },
    lanes: { streams: 80, warm: 1 },
    sharing: "lanes",
    proxyProtocol: "off",
    ...more,
  },
});

test("what is wrong with one of several clusters is told where it stands", () => {
  const twice = [
    { name: "a", url: "https://10.0.0.1" },
    { name: "a", url: "https://10.0.0.1:443" },
  ];
  assert.equal(repeatedUrls(placed({ backends: twice })), [
    {
      pointer: "/upstreams/3/backends/1/url",
      message: 'is "https://10.0.0.1:443", which is where backend "a" is',
    },
  ]);
  assert.is(repeatedBackends(placed({ backends: twice }))[0]?.pointer, "/upstreams/3/backends/1/name");
  const fallback = { name: "a", url: "https://10.0.0.9" };
  const discovery = { from: "file", interval: "30s", fallback } as const;
  assert.is(fallbackBreaches(placed({ discovery }))[0]?.pointer, "/upstreams/3/discovery/fallback/name");
  assert.equal(discoveryBreaches(placed({ discovery })), [
    { pointer: "/upstreams/3/discovery/file", message: 'is missing: discovery from "file" needs it' },
  ]);
});

test("a sound one has no breach", () => {
  const one = placed({});
  for (const rule of [repeatedUrls, repeatedBackends, fallbackBreaches, discoveryBreaches])
    assert.equal(rule(one), []);
});

test.run();
