import { readdirSync, readFileSync } from "node:fs";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type Config, parseConfig } from "../../src/config/config.ts";
import { isProblems, lineOf } from "../../src/config/problem.ts";
import { converted } from "../../src/config/v1alpha1.ts";
import { readYaml } from "../../src/config/yaml-document.ts";

const test = suite("config-v1alpha1");

const folder = "test/config/v1alpha1";
const names = readdirSync(folder).filter((name) => name.endsWith(".yaml"));
const read = (name: string): string => readFileSync(`${folder}/${name}`, "utf8");

function convert(text: string): string {
  const document = readYaml(text, "a.yaml");
  if (isProblems(document)) throw new Error(document.map(lineOf).join("\n"));
  return converted(document);
}

function load(text: string): Config {
  const config = parseConfig(text, "/base/a.yaml");
  if (isProblems(config)) throw new Error(config.map(lineOf).join("\n"));
  return config;
}

const refused = (text: string): string[] => {
  const outcome = parseConfig(text, "a.yaml");
  return isProblems(outcome) ? outcome.map(lineOf) : [];
};

const head = "apiVersion: watchkeeper.dev/v1alpha1\nkind: WatchkeeperConfiguration\n";

/** Returns every value in it as a line such as "listeners.0.address.port=8443". */
function leaves(value: unknown, path = ""): string[] {
  if (typeof value !== "object" || value === null)
    return value === undefined ? [] : [`${path}=${value as string}`];
  const all = Object.entries(value).flatMap(([key, child]) =>
    leaves(child, path === "" ? key : `${path}.${key}`),
  );
  return all.length > 0 ? all : [`${path}=none`];
}

/**
 * Renames the keys and values of v1alpha1 to today's. The expected configurations were recorded with the last version
 * that read v1alpha1.
 */
const renamed: readonly (readonly [was: RegExp, is: string])[] = [
  [/^upstreams\.(\d+)\.name=$/, "clusters.$1.name=default"],
  [/^upstreams\./, "clusters."],
  [/(^|\.)upstream=$/, "$1cluster=default"],
  [/(^|\.)upstream=/, "$1cluster="],
  [/\.hosts\.(\d+)\.names\./, ".hosts.$1.serverNames."],
  [/\.trustedForwarders/, ".trustedForwarderCIDRs"],
  [/\.proxyProtocol\.trusted/, ".proxyProtocol.trustedCIDRs"],
  [/\.proxyProtocol\.mode=off/, ".proxyProtocol.mode=Disabled"],
  [/\.proxyProtocol\.mode=accept/, ".proxyProtocol.mode=Optional"],
  [/\.proxyProtocol\.mode=require/, ".proxyProtocol.mode=Required"],
  [/\.proxyProtocol=v/, ".proxyProtocol=V"],
  [/\.connectionsPerSource/, ".maxConnectionsPerSource"],
  [/\.mode=http/, ".mode=HTTP"],
  [/\.mode=passthrough/, ".mode=Passthrough"],
  [/clientCerts=reject/, "clientCerts=Reject"],
  [/clientCerts=front-proxy/, "clientCerts=FrontProxy"],
  [/clientCerts=impersonate/, "clientCerts=Impersonate"],
  [/clientCerts=lend/, "clientCerts=ActAsImpersonator"],
  [/\.extraPrefix\./, ".extraPrefixes."],
  [/\.lanes\.streams=/, ".connectionPool.maxStreamsPerConnection="],
  [/\.lanes\.warm=/, ".connectionPool.minIdleConnections="],
  [/\.sharing=lanes/, ".connectionPool.perClient=false"],
  [/\.sharing=none/, ".connectionPool.perClient=true"],
  [/\.discovery\.from=dns/, ".discovery.type=DNS"],
  [/\.discovery\.from=file/, ".discovery.type=File"],
  [/\.discovery\.from=endpointslice/, ".discovery.type=EndpointSlice"],
  [/\.discovery\.from=leases/, ".discovery.type=Lease"],
  [/\.discovery\.name=/, ".discovery.hostname="],
  [/^watches\.bookmarks=always/, "watches.alwaysRequestBookmarks=true"],
  [/^watches\.bookmarks=as-asked/, "watches.alwaysRequestBookmarks=false"],
  [/^watches\.timeTravelGuard=observe/, "watches.staleReadGuard=Observe"],
  [/^watches\.timeTravelGuard=enforce/, "watches.staleReadGuard=Enforce"],
  [/^watches\.aggregatedGroups/, "watches.aggregatedAPIGroups"],
  [/^watches\.customGroups/, "watches.customResourceAPIGroups"],
  [/deadAfterAllMs/, "deadAfterWhenAllSilentMs"],
  [/^health\.keepalive/, "health.tcpKeepalive"],
  [/readyDelayMs/, "shutdownDelayMs"],
  [/^admin\.operations=on/, "admin.readOnly=false"],
  [/^admin\.operations=off/, "admin.readOnly=true"],
  [/^logging\.format=json/, "logging.format=JSON"],
  [/^logging\.format=text/, "logging.format=Text"],
  [/^logging\.accessLog=errors/, "logging.accessLog=Errors"],
  [/^logging\.accessLog=longrunning/, "logging.accessLog=LongRunning"],
  [/^logging\.accessLog=all/, "logging.accessLog=All"],
];

/** Keys that were added later, with their defaults. */
const added = ["admin.metrics=none", "admin.probeThread=true", "logging.level=Info", "workers=1"];

const today = (leaf: string): string => renamed.reduce((text, [was, is]) => text.replace(was, is), leaf);

test("each old file converts to the same effective configuration as before", () => {
  assert.is(names.length, 10);
  const before: Readonly<Record<string, unknown>> = JSON.parse(read("effective.json"));
  for (const name of names) {
    const { file: _, files: __, written: ___, sha256: ____, ...config } = load(convert(read(name)));
    // Keys that were added later: every listener has the first, and every cluster has the others.
    const since = /\.(reusePort=false|avoidUnreachableAPIs=true|limits=none|shield\..+)$/;
    const old = leaves(config).filter((leaf) => !since.test(leaf));
    const own = old.map((leaf) => leaf.replace("=/base/", "="));
    const expected = [...added, ...leaves(before[name]).map(today)];
    assert.equal(own.toSorted(), expected.toSorted(), name);
  }
});

test("the conversion changes what it must, and keeps comments and layout", () => {
  const shipped = ["clusters", "discovery", "passthrough", "sidecar", "static"];
  const plain = (text: string): string[] => text.split("\n").map((line) => line.replace(/\s*#.*$/, ""));
  const shown = (text: string): string[] =>
    plain(text).map((line) =>
      line.replace("[::]:", ":").replace(/^ {2}- name: (default|prod.*)$/, "cluster"),
    );
  for (const name of shipped) {
    const own = convert(read(`${name}.yaml`));
    assert.is(own.match(/#/g)?.length, read(`${name}.yaml`).match(/#/g)?.length, name);
    const now = readFileSync(`config/${name}.yaml`, "utf8");
    const filled = (lines: string[]): string[] => lines.filter((line) => line !== "");
    assert.equal(filled(shown(own)), filled(shown(now)), name);
  }
});

test("an old file is refused with the replacement for each key, where it stands", () => {
  const text = `${head}listeners: [{name: a, address: ":1", mode: passthrough}]
upstream:
  # none = by itself
  sharing: none
  lanes: {streams: 9}
  proxyProtocol: off
admin: {operations: off}
`;
  assert.equal(refused(text), [
    'a.yaml:1:13: apiVersion is "watchkeeper.dev/v1alpha1", which is no longer read: "watchkeeper config --convert a.yaml" prints the file as "watchkeeper.dev/v1alpha2"',
    'a.yaml:3:38: listeners[0].mode "passthrough" is now "Passthrough"',
    'a.yaml:4:1: upstream is now clusters[0], with "name: default"',
    "a.yaml:6:3: upstream.sharing is now clusters[0].connectionPool.perClient: true",
    "a.yaml:7:3: upstream.lanes is now clusters[0].connectionPool",
    "a.yaml:7:11: upstream.lanes.streams is now clusters[0].connectionPool.maxStreamsPerConnection",
    "a.yaml:8:3: upstream.proxyProtocol is the default now: remove it",
    "a.yaml:9:9: admin.operations is now admin.readOnly: true",
  ]);
  assert.is(
    convert(text),
    `${head.replace("v1alpha1", "v1alpha2")}listeners: [{name: a, address: ":1", mode: Passthrough}]
clusters:
  # none = by itself
  - name: default
    connectionPool: {perClient: true, maxStreamsPerConnection: 9}
admin: {readOnly: true}
`,
  );
});

test("what becomes one entry of a list, or part of another map, may stand in any form and order", () => {
  const to = (text: string): string => convert(head + text).slice(head.length);
  assert.is(to("upstream: {tls: {}}\n"), "clusters: [{name: default, tls: {}}]\n");
  const json =
    '{"apiVersion": "watchkeeper.dev/v1alpha1", "upstream": {"lanes": {"warm": 2}, "sharing": "none"}}';
  assert.is(
    convert(json),
    '{"apiVersion": "watchkeeper.dev/v1alpha2", "clusters": [{name: default, "connectionPool": {perClient: true, "minIdleConnections": 2}}]}',
  );
  assert.is(to("upstream: {name: x}\n"), "clusters: [{name: x}]\n");
  assert.is(to("upstream:\n  name: x\n  tls: {}\n"), "clusters:\n  - name: x\n    tls: {}\n");
  assert.is(
    to("upstream:\n    tls:\n        caFile: c # mine\n# drain\ndrain: {readyDelay: 1s}"),
    "clusters:\n    - name: default\n      tls:\n          caFile: c # mine\n# drain\ndrain: {shutdownDelay: 1s}",
  );
  assert.is(
    to("upstreams:\n- sharing: none\n  lanes:\n    warm: 2\n- lanes: {warm: 1}\n  sharing: lanes\n"),
    "clusters:\n- connectionPool:\n    perClient: true\n    minIdleConnections: 2\n- connectionPool: {perClient: false, minIdleConnections: 1}\n",
  );
  assert.is(
    to("upstreams: [{lanes: {}, sharing: none}, {name: b, proxyProtocol: off}]"),
    "clusters: [{connectionPool: {perClient: true}}, {name: b}]",
  );
});

test("a word that v1alpha1 did not have stays, and is told when the printed file is read", () => {
  const next = convert(
    `${head}listeners: [{name: a, address: "127.0.0.1:1", mode: tcp}]\nupstream: {sharing: 5}\n`,
  );
  assert.match(refused(next).join("\n"), 'listeners[0].mode must be one of "HTTP", "Passthrough", is "tcp"');
});

test("keys of v1alpha1 in a v1alpha2 file, as from a Helm chart's values, are refused with their replacements", () => {
  const text = `${head.replace("v1alpha1", "v1alpha2")}listeners: [{name: a, address: ":1", upstream: x}]
clusters: [{name: x, backends: [{name: b, url: "http://127.0.0.1:2"}], lanes: {warm: 1}}]
upstream: {lanes: {streams: 9}}
drain: {readyDelay: 1s, redyDelay: 1s}
`;
  const outcome = refused(text);
  assert.equal(
    outcome.filter((line) => !line.includes("only loopback may")),
    [
      "a.yaml:3:38: listeners[0].upstream is now listeners[0].cluster",
      "a.yaml:4:72: clusters[0].lanes is now clusters[0].connectionPool",
      "a.yaml:4:80: clusters[0].lanes.warm is now clusters[0].connectionPool.minIdleConnections",
      'a.yaml:5:1: upstream is now clusters[0], with "name: default"',
      "a.yaml:5:12: upstream.lanes is now clusters[0].connectionPool",
      "a.yaml:5:20: upstream.lanes.streams is now clusters[0].connectionPool.maxStreamsPerConnection",
      "a.yaml:6:9: drain.readyDelay is now drain.shutdownDelay",
      'a.yaml:6:25: drain unknown field "redyDelay"',
    ],
  );
});

test("a file of another version stays as it is", () => {
  const text = readFileSync("config/static.yaml", "utf8");
  assert.is(convert(text), text);
});

test.run();
