import { Ajv2020 } from "ajv/dist/2020.js";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import schema from "../../../config/schema/watchkeeper.v1alpha2.json" with { type: "json" };
import type { Written, WrittenCluster } from "../../../config/schema/written.ts";
import { inReadingOrder, isProblems, lineOf } from "../../../src/ops/config/problem.ts";
import { checkSchema } from "../../../src/ops/config/schema.ts";
import { readYaml } from "../../../src/ops/config/yaml-document.ts";

const test = suite("config-schema");

const head = "apiVersion: watchkeeper.dev/v1alpha2\nkind: WatchkeeperConfiguration\n";
const least = `${head}listeners: [{name: a, address: "127.0.0.1:1"}]\nclusters: [{name: c, backends: [{name: b, url: "http://[::1]:2"}]}]\n`;

test("the schema is valid; a process does not check it when it starts", () => {
  const ajv = new Ajv2020();
  assert.ok(ajv.validateSchema(schema), JSON.stringify(ajv.errors));
  assert.not(ajv.validateSchema({ ...schema, type: "nothing" }));
});

function check(text: string): Written | string[] {
  const document = readYaml(text, "a.yaml");
  if (isProblems(document)) throw new Error(document.map((problem) => lineOf(problem)).join("\n"));
  const { written, problems } = checkSchema(document);
  return written === undefined || problems.length > 0
    ? problems.toSorted(inReadingOrder).map((problem) => lineOf(problem))
    : written;
}

const everyCluster = {
  name: "x",
  backends: [{ name: "x", url: "https://10.0.0.1", weight: 2, zone: "x" }],
  discovery: {
    type: "DNS",
    interval: "1s",
    hostname: "x",
    port: 1,
    file: "x",
    kubeconfigFile: "x",
    fallback: { name: "x", url: "https://10.0.0.2", weight: 2, zone: "x" },
  },
  tls: {
    caFile: "x",
    reloadInterval: "1s",
    serverName: "x",
    frontProxy: {
      certFile: "x",
      keyFile: "x",
      reloadInterval: "1s",
      usernameHeaders: ["x"],
      uidHeaders: ["x"],
      groupHeaders: ["x"],
      extraHeaderPrefixes: ["x"],
    },
    impersonator: { certFile: "x", keyFile: "x", reloadInterval: "1s" },
  },
  connectionPool: { maxStreamsPerConnection: 1, minIdleConnections: 0, perClient: true },
  avoidUnreachableAPIs: false,
  proxyProtocol: { version: "V2" },
  shield: { enabled: true, queueTimeout: "1s", exemptGroups: ["x"] },
  limits: [
    {
      name: "x",
      all: true,
      users: ["x"],
      groups: ["x"],
      userAgents: ["x"],
      sourceCIDRs: ["10.0.0.0/8"],
      verbs: ["list"],
      resources: ["x"],
      rate: "1/s",
      burst: 1,
      maxInFlight: 1,
      scope: "AllReplicas",
    },
  ],
} satisfies Complete<WrittenCluster>;

/** A value with every key of the type. It no longer compiles if the type gains or loses a key. */
const every = {
  metadata: { name: "x" },
  listeners: [
    {
      name: "x",
      address: "127.0.0.1:1",
      mode: "HTTP",
      cluster: "x",
      routes: [{ serverNames: ["x"], cluster: "x", backends: ["x"] }],
      tls: { certFile: "x", keyFile: "x", reloadInterval: "1s", clientCAFile: "x" },
      identity: { clientCerts: "FrontProxy" },
      hosts: [
        {
          serverNames: ["x"],
          cluster: "x",
          tls: { certFile: "x", keyFile: "x", reloadInterval: "1s", clientCAFile: "x" },
          identity: { clientCerts: "FrontProxy" },
        },
      ],
      trustedForwarderCIDRs: ["10.0.0.0/8"],
      proxyProtocol: { mode: "Optional", trustedCIDRs: ["10.0.0.0/8"] },
      maxConnectionsPerSource: 1,
      reusePort: true,
    },
  ],
  clusters: [everyCluster],
  zone: "x",
  watches: {
    alwaysRequestBookmarks: true,
    staleReadGuard: "Observe",
    aggregatedAPIGroups: [],
    customResourceAPIGroups: [],
  },
  health: {
    ping: { interval: "1s", suspectAfter: "1s", deadAfter: "2s", deadAfterWhenAllSilent: "2s" },
    probe: { path: "/x", interval: "1s", timeout: "1s" },
    tcpKeepalive: { idleTime: "1s", interval: "1s", probes: 1 },
  },
  workers: 2,
  drain: { shutdownDelay: "0s", timeout: "0s", handoverDirectory: "x" },
  admin: {
    address: "[::1]:2",
    metricsAddress: "[::]:1",
    probeThread: true,
    readOnly: true,
    replicas: { addresses: ["127.0.0.1:1"], hostname: "x", port: 1, caFile: "x", serverName: "x" },
    metrics: {
      authorization: { mode: "AlwaysAllow", cluster: "x", kubeconfigFile: "x", audiences: ["x"] },
      tls: { certFile: "x", keyFile: "x", reloadInterval: "1s" },
    },
    authorization: { mode: "AlwaysAllow", cluster: "x", kubeconfigFile: "x", audiences: ["x"] },
    tls: { certFile: "x", keyFile: "x", reloadInterval: "1s" },
  },
  logging: { level: "Debug", format: "JSON", accessLog: "None" },
  tracing: { endpoint: "http://127.0.0.1:4318/v1/traces", samplingRatePerMillion: 1 },
} satisfies Complete<Written>;

/** The type T without optional properties, at any depth. */
type Complete<T> = T extends object ? { [K in keyof T]-?: Complete<NonNullable<T[K]>> } : T;

type Node = {
  readonly type?: unknown;
  readonly $ref?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Node>>;
  readonly items?: Node;
};

function resolved(node: Node): Node {
  const defs: Readonly<Record<string, Node>> = schema.$defs;
  return { ...defs[node.$ref?.replace("#/$defs/", "") ?? ""], ...node };
}

function schemaPaths(node: Node, path: string): string[] {
  const { properties, items } = resolved(node);
  if (items !== undefined) return schemaPaths(items, `${path}[]`);
  if (properties === undefined) return [path];
  return Object.entries(properties).flatMap(([key, child]) => schemaPaths(child, `${path}.${key}`));
}

function valuePaths(value: unknown, path: string): string[] {
  if (Array.isArray(value)) return valuePaths(value[0], `${path}[]`);
  if (typeof value !== "object" || value === null) return [path];
  return Object.entries(value).flatMap(([key, child]) => valuePaths(child, `${path}.${key}`));
}

test("schema and type have the same keys", () => {
  const own = ["", ".apiVersion", ".kind"];
  const paths = schemaPaths(schema, "").filter((path) => !own.includes(path));
  assert.equal(paths.toSorted(), valuePaths(every, "").toSorted());
});

test("every value of the type passes the schema", () => {
  assert.not(Array.isArray(check(JSON.stringify({ ...JSON.parse(headJson), ...every }))));
});

const headJson = '{"apiVersion": "watchkeeper.dev/v1alpha2", "kind": "WatchkeeperConfiguration"}';

test("every key is described, since the reference is made from it", () => {
  const bare: string[] = [];
  const visit = (node: Node, path: string): void => {
    for (const [key, child] of Object.entries(resolved(node).properties ?? {})) {
      if (child.description === undefined) bare.push(`${path}.${key}`);
      visit(child, `${path}.${key}`);
    }
    const { items } = resolved(node);
    if (items !== undefined) visit(items, `${path}[]`);
  };
  visit(schema, "");
  assert.equal(bare, []);
});

test("a key that is not set gets its default", () => {
  const written = check(least);
  if (Array.isArray(written)) throw new Error(written.join("\n"));
  assert.equal(JSON.parse(JSON.stringify(written.health)), {
    ping: { interval: "250ms", suspectAfter: "500ms", deadAfter: "2s", deadAfterWhenAllSilent: "10s" },
    probe: { path: "/readyz", interval: "1s", timeout: "2s" },
    tcpKeepalive: { idleTime: "5s", interval: "1s", probes: 12 },
  });
  const connectionPool = { maxStreamsPerConnection: 80, minIdleConnections: 1, perClient: false };
  assert.equal({ ...written.clusters[0]?.connectionPool }, connectionPool);
  assert.equal([written.listeners[0]?.mode, written.metadata.name], ["HTTP", "default"]);
});

test("a second file's defaults are its own", () => {
  const one = check(least);
  const other = check(least);
  assert.is.not((one as Written).health, (other as Written).health);
});

test("an unknown key is named with what was probably meant", () => {
  assert.equal(check(`${least}loging: {}\nhealth: {ping: {intervall: 1s}}\n`), [
    'a.yaml:5:1: unknown field "loging" (did you mean "logging"?)',
    'a.yaml:6:17: health.ping unknown field "intervall" (did you mean "interval"?)',
  ]);
});

test("all problems are told at once, in the order of the file", () => {
  const lines = check(`${head}listeners:
  - {name: Kube, address: "*:8443", mode: through, trustedForwarderCIDRs: [10.0.0.0/33]}
clusters:
  - name: c
    backends: []
    connectionPool: {maxStreamsPerConnection: 300, minIdleConnections: x, perClient: no}
    proxyProtocol: {version: V}
health: {ping: {interval: 10ms, deadAfter: soon}}
logging:
`);
  assert.equal(lines, [
    'a.yaml:4:12: listeners[0].name must be a name of lower-case letters, digits and dashes, such as "cp-1", is "Kube"',
    'a.yaml:4:27: listeners[0].address must be an IP address and port such as "127.0.0.1:8443" or ":8443", is "*:8443"',
    'a.yaml:4:43: listeners[0].mode must be one of "HTTP", "Passthrough", is "through"',
    'a.yaml:4:76: listeners[0].trustedForwarderCIDRs[0] must be a network such as "10.0.0.0/8", is "10.0.0.0/33"',
    "a.yaml:7:15: clusters[0].backends needs at least one",
    "a.yaml:8:47: clusters[0].connectionPool.maxStreamsPerConnection must be at most 250, is 300",
    'a.yaml:8:72: clusters[0].connectionPool.minIdleConnections must be a whole number, is "x"',
    'a.yaml:8:86: clusters[0].connectionPool.perClient must be true or false, is "no"',
    'a.yaml:9:30: clusters[0].proxyProtocol.version must be one of "V1", "V2", is "V" (did you mean "V1"?)',
    'a.yaml:10:27: health.ping.interval must be between 50ms and 1m, is "10ms"',
    'a.yaml:10:44: health.ping.deadAfter must be a duration such as "500ms", "2s" or "1m30s", is "soon"',
    "a.yaml:11:9: logging is empty: fill it in or remove its key",
  ]);
});

test("what is no text where a duration, a name or an address belongs is told once, as what it must be", () => {
  assert.equal(check(`${least}drain: {timeout: 60}\nadmin: {address: 7480}\nmetadata: {name: 5}\n`), [
    'a.yaml:5:18: drain.timeout must be a duration such as "500ms", "2s" or "1m30s", is 60',
    'a.yaml:6:18: admin.address must be an IP address and port such as "127.0.0.1:8443" or ":8443", is 7480',
    'a.yaml:7:18: metadata.name must be a name of lower-case letters, digits and dashes, such as "cp-1", is 5',
  ]);
});

test("where something is invalid is told for those who read it: fields, missing ones, and what was meant", () => {
  const invalid = (text: string): readonly string[] => {
    const document = readYaml(text, "a.yaml");
    return isProblems(document) ? [] : checkSchema(document).invalid;
  };
  assert.equal(invalid(least), []);
  assert.equal(invalid(`${least}drain: {timeout: x, shutdownDealy: 1s, odd: 1}\n`).toSorted(), [
    "/drain/odd",
    "/drain/shutdownDelay",
    "/drain/timeout",
  ]);
  assert.equal(invalid(`${head}listeners: [{name: a}]\nclusters: [{name: x}]\n`), ["/listeners/0/address"]);
});

test("a file of another kind gets one line about that, not one for each of its keys", () => {
  assert.equal(check("apiVersion: v1\nkind: WatchkeeperConfiguration\nspec: {}\n"), [
    'a.yaml:1:13: apiVersion must be "watchkeeper.dev/v1alpha2", is "v1"',
  ]);
  const older = head.replace("v1alpha2", "v1alpha1");
  assert.equal(check(`${older}upstream: {name: x}\nlisteners: []\n`), [
    'a.yaml:1:13: apiVersion must be "watchkeeper.dev/v1alpha2", is "watchkeeper.dev/v1alpha1"',
  ]);
  assert.equal(check("spec: {}\n"), ["a.yaml:1:1: apiVersion is missing", "a.yaml:1:1: kind is missing"]);
  assert.equal(check("- a\n"), ['a.yaml:1:1: must be a map of fields, is ["a"]']);
});

test("without apiVersion or kind, what has listeners is checked all the same", () => {
  const wrong =
    "listeners: [{name: a, address: x, mod: HTTP}]\nclusters: [{name: c, backends: [{name: b}]}]\n";
  const others = check(head + wrong);
  assert.ok(Array.isArray(others) && others.length === 3);
  const messages = (text: string): string[] => {
    const found = check(text);
    return Array.isArray(found) ? found.map((line) => line.replace(/^a\.yaml:[\d:]+ /, "")) : [];
  };
  const missing = ["apiVersion is missing", "kind is missing"];
  assert.equal(messages(wrong), [...missing, ...messages(head + wrong)]);
  assert.equal(messages(`kind: WatchkeeperConfiguration\n${wrong}`), [missing[0], ...messages(head + wrong)]);
});

test("__proto__ and constructor are unknown keys (A58)", () => {
  assert.equal(check(`${least}__proto__: {logging: {}}\nconstructor: 1\n`), [
    'a.yaml:5:1: unknown field "__proto__"',
    'a.yaml:6:1: unknown field "constructor"',
  ]);
});

test.run();
