import { suite } from "uvu";
import * as assert from "uvu/assert";
import { upstreamOf } from "../../src/config/upstream.ts";

const test = suite("config-upstream");

const least = { lanes: { streams: 80, warm: 1 }, sharing: "lanes", proxyProtocol: "off" } as const;

test("what is left out is said as such, and paths start where the file is", () => {
  assert.equal(
    upstreamOf({ ...least }, (path) => `/etc/${path}`),
    {
      name: "",
      backends: [],
      discovery: undefined,
      tls: undefined,
      lanes: { streams: 80, warm: 1 },
      sharing: "lanes",
      proxyProtocol: undefined,
    },
  );
  const written = {
    ...least,
    name: "eu",
    backends: [{ name: "a", url: "https://[fd00::1]" }],
    tls: { caFile: "ca.crt", reloadInterval: "2s" },
    proxyProtocol: "v2",
  } as const;
  const { name, backends, tls, proxyProtocol } = upstreamOf(written, (path) => `/etc/${path}`);
  assert.equal([name, proxyProtocol, tls?.caFile, tls?.reloadIntervalMs], ["eu", "v2", "/etc/ca.crt", 2000]);
  assert.equal(backends, [
    { name: "a", url: "https://[fd00::1]", host: "fd00::1", port: 443, isEncrypted: true },
  ]);
});

test.run();
