import { suite } from "uvu";
import * as assert from "uvu/assert";
import { checkRules } from "../src/config-rules.ts";
import type { Written } from "../src/config-schema.ts";

const test = suite("config-rules");

const tls = { certFile: "a", keyFile: "b", reloadInterval: "10s" };

/** A configuration without a breach, with parts of it exchanged. */
function written(change: Partial<Written>): Written {
  return {
    metadata: { name: "x" },
    listeners: [listener("kube", "[::]:8443", { tls })],
    upstream: upstream(["https://10.0.0.1:6443"]),
    health: {
      ping: { interval: "250ms", suspectAfter: "500ms", deadAfter: "2s" },
      keepalive: { idle: "5s", interval: "1s", count: 3 },
    },
    drain: { readyDelay: "5s", timeout: "60s" },
    admin: { metricsAddress: "[::]:7481" },
    logging: { format: "json", accessLog: "errors" },
    ...change,
  };
}

function listener(
  name: string,
  address: string,
  more: { readonly tls?: typeof tls } = {},
): Written["listeners"][number] {
  return { name, address, mode: "http", trustedForwarders: [], ...more };
}

function upstream(urls: readonly string[]): Written["upstream"] {
  const backends = urls.map((url, index) => ({ name: `cp-${index}`, url }));
  return { backends, tls: { caFile: "ca.crt" }, lanes: { streams: 80, warm: 1 }, sharing: "lanes" };
}

function breaches(change: Partial<Written>): string[] {
  return checkRules(written(change)).map(({ pointer, message }) => `${pointer} ${message}`);
}

test("a sound configuration has no breach", () => {
  assert.equal(breaches({}), []);
});

test("names are unique", () => {
  const listeners = [listener("a", "127.0.0.1:1"), listener("a", "127.0.0.1:2")];
  assert.equal(breaches({ listeners }), ['/listeners/1/name is "a" again: entry 0 has that name']);
});

test("a listener without TLS stays on loopback", () => {
  assert.equal(breaches({ listeners: [listener("a", "[::1]:1"), listener("b", "127.0.0.2:1")] }), []);
  assert.equal(breaches({ listeners: [listener("a", "0.0.0.0:1")] }), [
    '/listeners/0/address is "0.0.0.0:1", but without "tls" only loopback may be listened on',
  ]);
});

test("two listeners cannot have one port, metrics included", () => {
  const listeners = [
    listener("a", "127.0.0.1:7481"),
    listener("b", "127.0.0.1:0"),
    listener("c", "127.0.0.1:0"),
  ];
  assert.equal(breaches({ listeners }), [
    '/admin/metricsAddress is "[::]:7481", where another listener already stands',
  ]);
});

test("IPv4's wildcard leaves IPv6 alone, localhost is 127.0.0.1", () => {
  const metrics = (address: string): string[] =>
    breaches({
      listeners: [listener("a", "[::1]:1"), listener("b", "localhost:1")],
      admin: { metricsAddress: address },
    });
  assert.equal(metrics("0.0.0.0:2"), []);
  assert.is(metrics("0.0.0.0:1").length, 1);
  assert.is(metrics("127.0.0.1:1").length, 1);
});

test("a backend without TLS is on loopback (A57)", () => {
  assert.equal(breaches({ upstream: upstream(["http://169.254.169.254"]) }), [
    '/upstream/backends/0/url is "http://169.254.169.254", but http is for loopback addresses only: use https',
  ]);
});

test("a backend that is our own listener would be a circle", () => {
  assert.equal(breaches({ upstream: upstream(["https://127.0.0.1:8443"]) }), [
    `/upstream/backends/0/url is "https://127.0.0.1:8443", which is watchkeeper's own listener`,
  ]);
});

test("a backend at this host's own address is one too, another host's is not", () => {
  const listeners = [listener("kube", "10.0.0.5:6443", { tls })];
  assert.is(breaches({ listeners, upstream: upstream(["https://10.0.0.5:6443"]) }).length, 1);
  assert.is(breaches({ listeners, upstream: upstream(["https://10.0.0.6:6443"]) }).length, 0);
});

test("backends with https need an authority to check them against", () => {
  const { tls: _, ...withoutTls } = upstream(["http://127.0.0.1:1", "https://10.0.0.1"]);
  assert.equal(breaches({ upstream: withoutTls }), [
    "/upstream/tls/caFile is missing: backends with https need it",
  ]);
});

test("a lane is asked, then suspect, then dead", () => {
  const { health } = written({});
  const ping = { interval: "1s", suspectAfter: "500ms", deadAfter: "500ms" };
  assert.equal(breaches({ health: { ...health, ping } }), [
    '/health/ping/suspectAfter is "500ms", shorter than the interval of "1s"',
    `/health/ping/deadAfter is "500ms", not longer than suspectAfter's "500ms"`,
  ]);
});

test.run();
