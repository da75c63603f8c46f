import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { Written, WrittenCluster, WrittenLimit } from "../../../config/schema/written.ts";
import { checkRules, rules } from "../../../src/ops/config/rules.ts";
import { limitIn } from "../../../src/ops/config/schema.ts";

const test = suite("config-rules");

const tls = { certFile: "a", keyFile: "b", reloadInterval: "10s" };

const unguarded = { mode: "AlwaysAllow", audiences: [] } as const;

/** Returns a configuration that breaks no rule, with the parts in `change` replaced. */
function written(change: Partial<Written>): Written {
  return {
    metadata: { name: "x" },
    workers: 1,
    listeners: [listener("kube", "[::]:8443", { tls })],
    clusters: [cluster(["https://10.0.0.1:6443"])],
    watches: {
      alwaysRequestBookmarks: true,
      staleReadGuard: "Observe",
      aggregatedAPIGroups: [],
      customResourceAPIGroups: [],
    },
    health: {
      ping: { interval: "250ms", suspectAfter: "500ms", deadAfter: "2s", deadAfterWhenAllSilent: "10s" },
      probe: { path: "/readyz", interval: "1s", timeout: "3s" },
      tcpKeepalive: { idleTime: "5s", interval: "1s", probes: 3 },
    },
    drain: { shutdownDelay: "5s", timeout: "60s" },
    admin: {
      address: "127.0.0.1:7480",
      metricsAddress: "[::]:7481",
      probeThread: true,
      readOnly: false,
      authorization: unguarded,
      metrics: { authorization: unguarded },
    },
    logging: { level: "Info", format: "JSON", accessLog: "Errors" },
    ...change,
  };
}

function listener(
  name: string,
  address: string,
  more: Partial<Written["listeners"][number]> = {},
): Written["listeners"][number] {
  const proxyProtocol = { mode: "Disabled", trustedCIDRs: [] } as const;
  return {
    name,
    address,
    mode: "HTTP",
    identity: { clientCerts: "Reject" },
    hosts: [],
    trustedForwarderCIDRs: [],
    proxyProtocol,
    maxConnectionsPerSource: 9,
    reusePort: false,
    ...more,
  };
}

function cluster(urls: readonly string[]): WrittenCluster {
  const backends = urls.map((url, index) => ({ name: `cp-${index}`, url, weight: 1 }));
  return {
    name: "x",
    backends,
    tls: { caFile: "ca.crt", reloadInterval: "10s" },
    avoidUnreachableAPIs: true,
    connectionPool: { maxStreamsPerConnection: 80, minIdleConnections: 1, perClient: false },
    shield: { enabled: true, queueTimeout: "15s", exemptGroups: ["system:masters"] },
  };
}

function breaches(change: Partial<Written>, invalid: readonly string[] = []): string[] {
  return checkRules(written(change), invalid).map(({ pointer, message }) => `${pointer} ${message}`);
}

test("a sound configuration has no breach", () => {
  assert.equal(breaches({}), []);
});

test("names are unique", () => {
  const listeners = [listener("a", "127.0.0.1:1"), listener("a", "127.0.0.1:2")];
  assert.equal(breaches({ listeners }), ['/listeners/1/name is "a" again: entry 0 has that name']);
});

test("two backends with one url are one", () => {
  const urls = [
    "https://10.0.0.1:6443",
    "https://10.0.0.2:6443",
    "https://10.0.0.1:6443/",
    "https://10.0.0.1",
  ];
  assert.equal(breaches({ clusters: [cluster(urls)] }), [
    '/clusters/0/backends/2/url is "https://10.0.0.1:6443/", which is already the URL of backend "cp-0"',
  ]);
});

test("a limit must limit something, and not all requests; two limits have two names", () => {
  const limited = (...limits: readonly WrittenLimit[]): string[] =>
    breaches({ clusters: [{ ...cluster(["https://10.0.0.1"]), limits }] });
  assert.equal(
    limited({ name: "a", users: ["x"], rate: "1/s" }, { name: "b", verbs: ["list"], maxInFlight: 1 }),
    [],
  );
  assert.match(limited({ name: "a", users: ["x"] })[0] ?? "", '/clusters/0/limits/0 needs a "rate"');
  assert.match(limited({ name: "a", rate: "1/s" })[0] ?? "", "matches all requests");
  assert.match(
    limited({ name: "a", users: ["x"], maxInFlight: 1, burst: 2 })[0] ?? "",
    'a "burst", but no "rate"',
  );
  const twice = { name: "a", users: ["x"], rate: "1/s" };
  assert.match(limited(twice, twice)[0] ?? "", "/clusters/0/limits/1/name is");
});

test("a star in a name of a limit must be its end, because it would match no name elsewhere", () => {
  const problem = (name: string): string => {
    const limit = limitIn({ name: "a", userAgents: [name], rate: "1/s" });
    return typeof limit === "string" ? limit : "";
  };
  for (const name of ["kubectl", "kube*", "*", "a".repeat(256)]) assert.is(problem(name), "", name);
  for (const name of ["*ctl", "k*l", "k**", "", "a".repeat(257)])
    assert.match(problem(name), "must be a name, or the beginning of a name with * after it", name);
});

test("a rule is asked when all that it reads has passed the schema, whatever is invalid elsewhere", () => {
  const listeners = [listener("a", "0.0.0.0:1"), listener("a", "127.0.0.2:2")];
  const plain = "/listeners/0/address is";
  const twice = "/listeners/1/name is";
  const told = (...invalid: string[]): string[] =>
    breaches({ listeners }, invalid).map((line) => line.split(" ").slice(0, 2).join(" "));
  assert.equal(told("/drain/timeout"), [twice, plain]);
  assert.equal(told("/listeners/1/address"), [twice]);
  assert.equal(told("/listeners/0/name", "/clusters"), [plain]);
  assert.equal(told("/listeners"), []);
});

/** Wraps a value so that `seen` gets the path of each property that is read. */
function spied<T extends object>(value: T, at: string, seen: Set<string>): T {
  return new Proxy(value, {
    get(target, key) {
      const got: unknown = Reflect.get(target, key);
      if (typeof key !== "string" || !Object.hasOwn(target, key) || key === "length") return got;
      const path = `${at}/${/^\d+$/.test(key) ? "*" : key}`;
      if (typeof got === "object" && got !== null) return spied(got, path, seen);
      seen.add(path);
      return got;
    },
  });
}

test("no rule reads what it does not say that it reads", () => {
  const seen = new Map<string, Set<string>>();
  const pair = { certFile: "a", keyFile: "b", reloadInterval: "10s" };
  const every = written({
    listeners: [
      {
        ...listener("a", "[::]:1", { tls: { ...tls, clientCAFile: "c" } }),
        identity: { clientCerts: "Impersonate" },
      },
      listener("b", "[::]:2", { mode: "Passthrough", routes: [{ serverNames: ["x"], backends: ["cp-0"] }] }),
    ],
    clusters: [
      {
        ...cluster(["https://10.0.0.1:6443", "https://10.0.0.2:6443"]),
        limits: [{ name: "x", users: ["y"], rate: "1/s", scope: "AllReplicas" }],
        tls: { caFile: "ca.crt", reloadInterval: "10s", impersonator: pair },
        discovery: {
          type: "DNS",
          interval: "1s",
          hostname: "x",
          fallback: { name: "f", url: "https://10.0.0.3", weight: 1 },
        },
      },
    ],
  });
  const several = {
    ...every,
    clusters: [...every.clusters, { ...cluster(["https://10.0.0.1"]), name: "eu" }],
  };
  const replicated = { ...every, admin: { ...every.admin, replicas: { addresses: ["127.0.0.1:1"] } } };
  for (const { reads, breaches: run } of rules) {
    const read = new Set<string>();
    run(spied(every, "", read));
    run(spied(replicated, "", read));
    run(spied(several, "", read));
    seen.set(reads.join(), read);
    for (const path of read)
      assert.ok(
        reads.some((said) => path === said || path.startsWith(`${said}/`)),
        `${path} is read by the rule of ${reads.join()}`,
      );
  }
  assert.ok([...seen.values()].every((read) => read.size > 0));
});

test("a PROXY header needs trusted sources; a load balancer without PROXY headers may be trusted too", () => {
  const proxied = (mode: "Disabled" | "Optional" | "Required", ...trustedCIDRs: string[]): string[] =>
    breaches({ listeners: [listener("a", "[::]:1", { tls, proxyProtocol: { mode, trustedCIDRs } })] });
  for (const mode of ["Optional", "Required"] as const) {
    assert.equal(proxied(mode, "10.0.0.0/8"), []);
    assert.equal(proxied(mode), [
      `/listeners/0/proxyProtocol/trustedCIDRs is empty, but mode "${mode}" needs at least one network`,
    ]);
  }
  assert.equal(proxied("Disabled", "10.0.0.0/8"), []);
});

test("the client CA and the credential that asserts its users are configured together or not at all", () => {
  const kube = (clientCerts: "Reject" | "FrontProxy" | "Impersonate", clientCAFile?: string) => ({
    ...listener("kube", "[::]:8443", { tls: { ...tls, ...(clientCAFile && { clientCAFile }) } }),
    identity: { clientCerts },
  });
  const ready = cluster(["https://10.0.0.1:6443"]);
  const pair = { certFile: "a", keyFile: "b", reloadInterval: "10s" };
  const vouching = { ...ready, tls: { caFile: "ca.crt", reloadInterval: "10s", impersonator: pair } };
  assert.equal(breaches({ listeners: [kube("Reject", "ca")] }), [
    '/listeners/0/tls/clientCAFile has no effect while "identity.clientCerts" is "Reject"',
  ]);
  assert.equal(breaches({ listeners: [kube("FrontProxy")] }), [
    '/listeners/0/tls/clientCAFile is missing: identity.clientCerts "FrontProxy" needs it',
    '/clusters/0/tls/frontProxy is missing: identity.clientCerts "FrontProxy" needs it',
  ]);
  assert.equal(breaches({ listeners: [kube("Impersonate", "ca")], clusters: [vouching] }), []);
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
    '/admin/metricsAddress is "[::]:7481", which another listener already uses',
  ]);
});

test("IPv4's wildcard leaves IPv6 alone", () => {
  const metrics = (address: string): string[] =>
    breaches({
      listeners: [listener("a", "[::1]:1"), listener("b", "127.0.0.1:1")],
      admin: {
        address: "127.0.0.1:7480",
        metricsAddress: address,
        probeThread: true,
        readOnly: false,
        authorization: unguarded,
        metrics: { authorization: unguarded },
      },
    });
  assert.equal(metrics("0.0.0.0:2"), []);
  assert.is(metrics("0.0.0.0:1").length, 1);
  assert.is(metrics("127.0.0.1:1").length, 1);
});

test("a backend without TLS is on loopback (A57)", () => {
  assert.equal(breaches({ clusters: [cluster(["http://169.254.169.254"])] }), [
    '/clusters/0/backends/0/url is "http://169.254.169.254", but http is for loopback addresses only: use https',
  ]);
});

test("a backend that is the proxy's own listener would be a loop", () => {
  assert.equal(breaches({ clusters: [cluster(["https://127.0.0.1:8443"])] }), [
    `/clusters/0/backends/0/url is "https://127.0.0.1:8443", which is watchkeeper's own listener`,
  ]);
});

test("a backend at this host's own address is one too, another host's is not", () => {
  const listeners = [listener("kube", "10.0.0.5:6443", { tls })];
  assert.is(breaches({ listeners, clusters: [cluster(["https://10.0.0.5:6443"])] }).length, 1);
  assert.is(breaches({ listeners, clusters: [cluster(["https://10.0.0.6:6443"])] }).length, 0);
});

test("a fallback is a backend like any other: a name of its own, https, and not ourselves", () => {
  const at = (url: string, name = "service"): Partial<Written> => ({
    clusters: [
      {
        ...cluster(["https://10.0.0.1"]),
        discovery: { type: "DNS", interval: "30s", hostname: "x", fallback: { name, url, weight: 1 } },
      },
    ],
  });
  const [listed] = cluster(["https://10.0.0.1"]).backends ?? [];
  assert.equal(breaches(at("https://10.96.0.1")), []);
  assert.match(breaches(at("http://10.96.0.1")).join(), "/clusters/0/discovery/fallback/url is");
  assert.match(
    breaches(at("https://10.96.0.1", listed?.name)).join(),
    "/clusters/0/discovery/fallback/name is",
  );
});

test("without backends there must be a discovery, and it must be told what it needs", () => {
  const from = (discovery: object): Partial<Written> => ({
    clusters: [{ ...cluster([]), discovery: { type: "DNS", interval: "30s", ...discovery } }],
  });
  const { backends: _, ...bare } = cluster([]);
  assert.equal(breaches({ clusters: [bare] }), ['/clusters/0/backends is missing, and so is "discovery"']);
  assert.equal(breaches(from({ hostname: "api.test" })), []);
  assert.equal(breaches(from({ type: "Lease" })), []);
  assert.equal(breaches(from({ file: "a", port: 1 })), [
    '/clusters/0/discovery/hostname is missing: discovery of type "DNS" needs it',
    '/clusters/0/discovery/file is not for discovery of type "DNS"',
  ]);
  assert.equal(breaches(from({ type: "EndpointSlice", port: 1, kubeconfigFile: "k" })), [
    '/clusters/0/discovery/port is not for discovery of type "EndpointSlice"',
  ]);
});

test("what is discovered needs an authority as well", () => {
  const { tls: _, ...open } = cluster([]);
  const discovery = { type: "File", interval: "30s", file: "a" } as const;
  assert.equal(breaches({ clusters: [{ ...open, discovery }] }), [
    "/clusters/0/tls/caFile is missing: discovered backends need it",
  ]);
});

test("backends with https need an authority to check them against", () => {
  const { tls: _, ...withoutTls } = cluster(["http://127.0.0.1:1", "https://10.0.0.1"]);
  assert.equal(breaches({ clusters: [withoutTls] }), [
    "/clusters/0/tls/caFile is missing: backends with https need it",
  ]);
});

test("an upstream connection is asked, then suspect, then dead", () => {
  const { health } = written({});
  const ping = { interval: "1s", suspectAfter: "500ms", deadAfter: "500ms", deadAfterWhenAllSilent: "200ms" };
  assert.equal(breaches({ health: { ...health, ping } }), [
    '/health/ping/suspectAfter is "500ms", shorter than the interval of "1s"',
    `/health/ping/deadAfter is "500ms", not longer than suspectAfter's "500ms"`,
    `/health/ping/deadAfterWhenAllSilent is "200ms", shorter than deadAfter's "500ms"`,
  ]);
});

test("Kubernetes is not asked where every connection needs a PROXY header", () => {
  const proxied = (type: "DNS" | "Lease"): string[] =>
    breaches({
      clusters: [
        {
          ...cluster([]),
          proxyProtocol: { version: "V2" },
          discovery: { type, interval: "1s", ...(type === "DNS" ? { hostname: "a.example" } : {}) },
        },
      ],
    });
  assert.equal(proxied("DNS"), []);
  assert.match(proxied("Lease").join(), "/clusters/0/discovery/type is");
});

test.run();
