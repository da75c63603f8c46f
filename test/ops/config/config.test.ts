import { execFileSync } from "node:child_process";
import { chmodSync, globSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { isMap, isPair, isSeq, parseDocument, visit } from "yaml";
import { wallClock } from "../../../src/base/clock.ts";
import type { ClusterConfig } from "../../../src/ops/config/cluster.ts";
import { type Config, loadConfig, parseConfig, watchConfig } from "../../../src/ops/config/config.ts";
import { isProblems, lineOf, type Problem } from "../../../src/ops/config/problem.ts";
import { cpuMs } from "../../support/cpu.ts";
import { within } from "../../support/within.ts";

const test = suite("config");

let directory = "";
test.before.each(() => {
  directory = mkdtempSync(join(tmpdir(), "config-"));
});
test.after.each(() => rmSync(directory, { recursive: true }));

const sample = readFileSync("config/static.yaml", "utf8");

function configOf(outcome: Config | readonly Problem[]): Config {
  if (isProblems(outcome)) throw new Error(linesOf(outcome).join("\n"));
  return outcome;
}

function linesOf(outcome: Config | readonly Problem[]): string[] {
  return isProblems(outcome) ? outcome.map((problem) => lineOf(problem)) : [];
}

/** Returns the path, as keys and indices, of the node that lies below these ancestors. */
function pathOf(ancestors: readonly unknown[]): (string | number)[] {
  return ancestors.flatMap((one, at): (string | number)[] => {
    const below = ancestors[at + 1];
    if (isPair(one)) return [String(one.key)];
    return isSeq(one) && isMap(below) ? [one.items.indexOf(below)] : [];
  });
}

test("every sample loads, and names the schema for editors", () => {
  const samples = globSync("config/*.yaml");
  assert.ok(samples.length >= 2);
  for (const file of samples) {
    configOf(loadConfig(file));
    const [first] = readFileSync(file, "utf8").split("\n");
    assert.is(first, "# yaml-language-server: $schema=./schema/watchkeeper.v1alpha2.json", file);
  }
});

test("a configuration lists each file that it names, once", () => {
  const text = readFileSync("config/clusters.yaml", "utf8");
  const named = [...text.matchAll(/File: ([^,\s]+)/g)].map(([, path = ""]) => path);
  assert.equal(configOf(loadConfig("config/clusters.yaml")).files.toSorted(), [...new Set(named)].toSorted());
});

test("what a sample shows commented out is the default", () => {
  const shown = sample.replaceAll(/^( *)# ((?:\w+: [[{]|\w+: \w+ +#|reloadInterval).*)$/gm, "$1$2");
  assert.is.not(shown, sample);
  const plain = sample.replaceAll(/^ *#.*$/gm, "");
  // Ignores the written form and its hash, because both may differ: "60s" and "1m" are the same time.
  const taken = (text: string): object => ({
    ...configOf(parseConfig(text, "a.yaml")),
    written: undefined,
    sha256: undefined,
  });
  assert.equal(taken(shown), taken(plain));
});

test("paths start at the file's directory, durations are milliseconds, addresses are split", () => {
  const text = sample
    .replaceAll("/etc/kubernetes/pki/", "pki/")
    .replace("# reloadInterval: 5s", "reloadInterval: 1m");
  const config = configOf(parseConfig(text, "some/where/a.yaml"));
  const { tls, address } = config.listeners[0] ?? assert.unreachable("no listener") ?? {};
  assert.is(tls?.certFile, resolve("some/where/pki/watchkeeper.crt"));
  assert.is(tls?.reloadIntervalMs, 60_000);
  assert.equal(address, { host: "::", port: 8443 });
  assert.equal(config.clusters[0].backends[0], {
    name: "cp-1",
    url: "https://10.0.0.11:6443",
    host: "10.0.0.11",
    port: 6443,
    isEncrypted: true,
  });
});

test("rules that fields break together are told with their place", () => {
  const outcome = parseConfig(sample.replace("name: cp-2", "name: cp-1"), "a.yaml");
  assert.match(
    linesOf(outcome)[0] ?? "",
    /^a\.yaml:\d+:15: clusters\[0\]\.backends\[1\]\.name is "cp-1" again/,
  );
});

test("what the schema and what the rules have against a file is told at once, in its order", () => {
  const text = sample
    .replace("name: cp-2", "name: cp-1")
    .replace('":8443"', '":8443"\n    trustedForwarderCIDR: []')
    .concat("drain: {timeout: 60}\n");
  const lines = linesOf(parseConfig(text, "a.yaml")).map((line) => line.replace(/^a\.yaml:\d+:\d+: /, ""));
  assert.is(lines.length, 3);
  assert.match(
    lines[0] ?? "",
    'unknown field "trustedForwarderCIDR" (did you mean "trustedForwarderCIDRs"?)',
  );
  assert.match(lines[1] ?? "", 'clusters[0].backends[1].name is "cp-1" again');
  assert.match(lines[2] ?? "", "drain.timeout must be a duration");
});

test("whatever stands in the place of a value, the answer is problems, and no rule trips over it", () => {
  const { contents } = parseDocument(sample);
  const paths: (readonly (string | number)[])[] = [];
  visit(contents, {
    Scalar: (_key, _node, ancestors) => void paths.push(pathOf(ancestors)),
    Map: (_key, _node, ancestors) => void paths.push(pathOf(ancestors)),
    Seq: (_key, _node, ancestors) => void paths.push(pathOf(ancestors)),
  });
  assert.ok(paths.length > 20);
  for (const path of paths)
    for (const odd of [5, true, "", "x y", [], [5], {}, { x: 1 }, null]) {
      const document = parseDocument(sample);
      if (path.length > 0) document.setIn(path, odd);
      for (const line of linesOf(parseConfig(String(document), "a.yaml")))
        assert.match(line, /^a\.yaml:\d+:\d+: /);
    }
});

test("discovery is one of four, its paths start at the file's directory", () => {
  const discovered = (lines: string): ClusterConfig =>
    configOf(
      parseConfig(sample.replace(/ {4}backends:[^]*? {4}tls:/, `    ${lines}\n    tls:`), "dir/a.yaml"),
    ).clusters[0];
  assert.equal(discovered("discovery: {type: DNS, hostname: api.test}").discovery, {
    type: "DNS",
    intervalMs: 30_000,
    hostname: "api.test",
    port: 6443,
  });
  const file = discovered("discovery: {type: File, file: list.yaml, interval: 1m}");
  assert.equal(file.discovery, { type: "File", intervalMs: 60_000, file: resolve("dir/list.yaml") });
  assert.equal(file.backends, []);
  const slices = discovered("discovery: {type: EndpointSlice, kubeconfigFile: kube.conf}").discovery;
  assert.equal(slices, {
    type: "EndpointSlice",
    intervalMs: 30_000,
    kubeconfigFile: resolve("dir/kube.conf"),
  });
  assert.is(configOf(parseConfig(sample, "a.yaml")).clusters[0].discovery, undefined);
});

test("a file that is empty, only comments, binary or too large is one problem", () => {
  assert.equal(linesOf(parseConfig(" \n", "a.yaml")), ["a.yaml:1:1: is empty"]);
  assert.equal(linesOf(parseConfig("# nothing\n", "a.yaml")), ["a.yaml:1:1: is empty"]);
  assert.is(linesOf(parseConfig("\0\0", "a.yaml")).length, 1);
  const large = "a: 1\n".repeat(2_000_000);
  let told = "";
  const tookMs = cpuMs(() => {
    told = linesOf(parseConfig(large, "a.yaml"))[0] ?? "";
  });
  assert.match(told, /is larger than 65536 bytes/);
  assert.ok(tookMs < 1000, `${tookMs} ms`);
});

test("a file that cannot be read is a problem, whatever stands in its place", () => {
  const path = (name: string): string => join(directory, name);
  writeFileSync(path("huge"), Buffer.alloc(10_000_000, "#"));
  writeFileSync(path("latin"), Buffer.from([0x61, 0x3a, 0xff]));
  execFileSync("mkfifo", [path("pipe")]);
  const said = ["missing", ".", "pipe", "huge", "latin"].map((name) =>
    linesOf(loadConfig(path(name)))
      .join()
      .replace(directory, ""),
  );
  assert.is(said[0], "/missing: does not exist");
  assert.match(said[1] ?? "", /is not a regular file$/);
  assert.match(said[2] ?? "", /is not a regular file$/);
  assert.match(said[3] ?? "", /is larger than/);
  assert.match(said[4] ?? "", /is not UTF-8 text$/);
});

test("a file that may not be read says so", () => {
  const file = join(directory, "a.yaml");
  writeFileSync(file, sample);
  chmodSync(file, 0);
  // Root may read every file, so for root this file loads.
  const expected = process.getuid?.() === 0 ? [] : [`${file}:1:1: may not be read: permission denied`];
  assert.equal(linesOf(loadConfig(file)), expected);
});

test("whatever a text is, the answer is a Config or problems with places", () => {
  let seed = 20_261_120;
  const random = (below: number): number => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7f_ff_ff_ff;
    return (seed >> 8) % below;
  };
  const pieces = [
    "{",
    "}",
    "[",
    "]",
    ":",
    "- ",
    "\n",
    "\t",
    "&a ",
    "*a",
    "!!x",
    "#",
    '"',
    "'",
    "\0",
    "? ",
    "|\n",
    "<<: ",
    "---\n",
    "é",
    "\ufeff",
  ];
  for (let round = 0; round < 3000; round++) {
    let text = sample;
    for (let edits = 1 + random(4); edits > 0; edits--) {
      const at = random(text.length + 1);
      text = text.slice(0, at) + (pieces[random(pieces.length)] ?? "") + text.slice(at + random(6));
    }
    if (random(4) === 0) text = text.slice(0, random(text.length + 1));
    const outcome = parseConfig(text, "a.yaml");
    if (!isProblems(outcome)) continue;
    assert.ok(outcome.length > 0, text);
    for (const line of linesOf(outcome)) assert.match(line, /^a\.yaml:\d+:\d+: .*$/, text);
  }
});

test("a host may lend the impersonator as its listener may", () => {
  const serving = "{certFile: a.crt, keyFile: a.key, clientCAFile: b.crt}";
  const text = `apiVersion: watchkeeper.dev/v1alpha2
kind: WatchkeeperConfiguration
listeners:
  - name: kube
    address: "127.0.0.1:0"
    tls: {certFile: a.crt, keyFile: a.key}
    hosts: [{serverNames: [own.test], tls: ${serving}, identity: {clientCerts: ActAsImpersonator}}]
clusters:
  - name: default
    backends: [{name: a, url: "https://10.0.0.1"}]
    tls: {caFile: b.crt, impersonator: {certFile: a.crt, keyFile: a.key}}
`;
  const config = configOf(parseConfig(text, "a.yaml"));
  assert.equal(config.listeners[0]?.hosts[0]?.tls.identity, { clientCerts: "ActAsImpersonator" });
});

test("a changed file is loaded again, good or bad, however it is replaced", async () => {
  const file = join(directory, "a.yaml");
  writeFileSync(file, sample);
  const heard: (Config | readonly Problem[])[] = [];
  let ring: () => void = () => undefined;
  const stop = watchConfig(file, {
    clock: { ...wallClock, after: (ms, run) => wallClock.after(ms / 20, run) },
    onChange(loaded) {
      heard.push(loaded);
      ring();
    },
  });
  const next = (): Promise<void> =>
    within(20_000, "the change to be heard", new Promise((heardOne) => (ring = heardOne)));
  await new Promise((passed) => setTimeout(passed, 100));
  writeFileSync(file, sample.replace("prod-eu1", "prod-eu2"));
  await next();
  writeFileSync(join(directory, "new"), "kind: [");
  renameSync(join(directory, "new"), file);
  await next();
  stop();
  assert.is(configOf(heard[0] ?? []).name, "prod-eu2");
  assert.match(linesOf(heard[1] ?? [])[0] ?? "", /is not YAML/);
});

test.run();
