/**
 * Configuration files. The result must be a Config, or problems with their positions. Nothing else may be returned or
 * thrown, and no member of Object.prototype may appear in it. Every value is also parsed as an address, which must
 * survive the conversion to text and back.
 */
import { readFileSync } from "node:fs";
import { isBoundAt, networksOf, textOf, withoutMapping } from "../../../src/base/address.ts";
import { type Config, configsByCluster, parseConfig } from "../../../src/ops/config/config.ts";
import { configLimits } from "../../../src/ops/config/limits.ts";
import { isProblems, lineOf } from "../../../src/ops/config/problem.ts";
import { checkAddresses } from "../addresses.ts";
import type { Target } from "../target.ts";
import { configSeeds } from "./config-seeds.ts";

const sample = (name: string): string =>
  readFileSync(new URL(`../../../config/${name}.yaml`, import.meta.url), "utf8").replaceAll(/ *#.*$/gm, "");

export const config: Target = {
  sources: [
    "ops/config/config",
    "ops/config/yaml-document",
    "ops/config/schema",
    "ops/config/rules",
    "ops/config/references",
    "ops/config/cluster",
    "ops/config/cluster-rules",
    "ops/config/passthrough",
    "ops/config/problem",
    "base/duration",
    "base/address",
  ],
  seeds: [
    sample("static"),
    sample("sidecar"),
    sample("passthrough"),
    sample("discovery"),
    sample("clusters"),
    ...configSeeds,
    'listeners: [{name: a, address: "[::1]:0"}]\nclusters: [{name: c, backends: [{name: b, url: "https://a"}]}]\n',
    "a: &a [*a, *a]\n<<: *a\n? [x]\n: !!binary AAAA\n--- \nb\n",
  ],
  words: [
    "\n",
    "  ",
    "- ",
    ": ",
    "{",
    "}",
    "[",
    "]",
    '"',
    "'",
    "|\n",
    ">-\n",
    "&a ",
    "*a",
    "!!js/function ",
    "!!str ",
    "<<: *a\n",
    "__proto__: {}\n",
    "constructor: 1\n",
    "---\n",
    "%YAML 1.1\n",
    "listeners:\n",
    "clusters:\n",
    "backends:\n",
    "url: https://",
    "address: ",
    "127.0.0.1:0",
    "[::]:8443",
    "10s",
    "1e9h",
    "null",
    "~",
    "0x10",
    ".inf",
    "169.254.169.254",
    "http://u:p@h",
    "mode: Passthrough",
    "identity: {clientCerts: FrontProxy}",
    "discovery: {type: DNS}",
    "watchkeeper.dev/v1alpha1",
    "hosts: [",
    "routes: [",
    "upstream: ",
    "serverNames: [",
    "tls: {",
    "certFile: c, keyFile: k",
    "clientCAFile: a",
    "frontProxy: {",
    "impersonator: {",
    "fallback: {name: b, url: ",
    "proxyProtocol: {mode: Required, trustedCIDRs: [",
    "trustedForwarderCIDRs: [",
    "10.0.0.0/8",
    "fd00::/8",
    "cluster: ",
    "health: {ping: {",
    "interval: ",
    "suspectAfter: ",
    "deadAfter: ",
    "connectionPool: {minIdleConnections: 0}",
    "drain: {timeout: ",
    "admin: {metricsAddress: ",
    "logging: {accessLog: ",
  ],
  run(input) {
    const text = input.toString("utf8");
    checkAddresses(text.split(/[\s"',{}]+/));
    const outcome = parseConfig(text, "x.yaml");
    if (Object.getOwnPropertyNames(Object.prototype).length !== 12)
      throw new Error("Object has another member");
    if (!isProblems(outcome)) {
      checkConfig(outcome);
      return;
    }
    if (outcome.length === 0 || outcome.length > configLimits.configProblems)
      throw new Error(`${outcome.length} problems`);
    for (const problem of outcome)
      if (problem.message === "" || !/^x\.yaml:\d+:\d+$/.test(problem.at)) throw new Error(lineOf(problem));
  },
};

function checkConfig(read: Config): void {
  if (read.listeners.length === 0) throw new Error("no listener, and no problem is reported");
  if (configsByCluster(read).length !== read.clusters.length) throw new Error("a cluster is missing");
  for (const { trustedForwarderCIDRs, proxyProtocol, address } of read.listeners) {
    // has() must accept every listening host without an error, even one with a zone, which belongs to no network.
    networksOf([...trustedForwarderCIDRs, ...proxyProtocol.trustedCIDRs]).has(withoutMapping(address.host));
    if (!isBoundAt({ address: address.host, port: address.port }, address))
      throw new Error(`${textOf(address)} is not where it is`);
  }
}
