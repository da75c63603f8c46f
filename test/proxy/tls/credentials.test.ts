import { X509Certificate } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { wallClock } from "../../../src/base/clock.ts";
import { Failure } from "../../../src/base/failure.ts";
import { Journal } from "../../../src/events/journal.ts";
import { type ConfigForCluster, parseConfig } from "../../../src/ops/config/config.ts";
import { isProblems } from "../../../src/ops/config/problem.ts";
import type { Pair } from "../../../src/ops/pki/pki.ts";
import { Credentials } from "../../../src/proxy/tls/credentials.ts";
import { testPki } from "../../support/pki.ts";
import { within } from "../../support/within.ts";

const test = suite("proxy/tls/credentials");

const { authority } = await testPki();
const first = authority.issue({ name: "front-proxy-client", usage: "client" });
const second = authority.issue({ name: "front-proxy-client", usage: "client" });

let directory = "";
let credentials: Credentials;
let swapped: string[] = [];
let onSwap = (): void => {};
test.before.each(() => {
  directory = mkdtempSync(join(tmpdir(), "credentials-"));
  swapped = [];
  onSwap = () => {};
  credentials = new Credentials({
    clock: wallClock,
    journal: new Journal(wallClock),
    prefix: "",
    onSwap: (trust) => {
      swapped.push(trust);
      onSwap();
    },
    random: () => 0.5,
    backends: () => [],
    isReady: () => false,
    onProof: () => {},
  });
});
test.after.each(() => {
  credentials.stop();
  rmSync(directory, { recursive: true });
});

function put(name: string, { certificate, key }: Pair): void {
  writeFileSync(join(directory, `${name}.crt`), certificate);
  writeFileSync(join(directory, `${name}.key`), key);
}

function configOf(tls: string): ConfigForCluster {
  const text = `apiVersion: watchkeeper.dev/v1alpha2
kind: WatchkeeperConfiguration
listeners: [{name: kube, address: "127.0.0.1:0"}]
clusters:
  - name: default
    backends: [{name: a, url: "https://10.0.0.1"}]
    tls: {caFile: ca.crt${tls}}`;
  const config = parseConfig(text, join(directory, "watchkeeper.yaml"));
  if (isProblems(config)) throw new Error(JSON.stringify(config));
  return { ...config, cluster: config.clusters[0] };
}

const pairOf = (name: string): string =>
  `{certFile: ${name}.crt, keyFile: ${name}.key, reloadInterval: 100ms}`;
const both = (): ConfigForCluster =>
  configOf(`, frontProxy: ${pairOf("front")}, impersonator: ${pairOf("other")}`);

async function take(config: ConfigForCluster): Promise<void> {
  const commit = await credentials.prepare(config);
  if (commit instanceof Failure) throw new Error(commit.message);
  commit();
}

test("each trust class with a client certificate has its own, and no other class has any", async () => {
  put("front", first);
  put("other", second);
  await take(both());
  assert.match(first.certificate, credentials.pairFor("front-proxy")?.chain.trim() ?? "none");
  assert.match(second.certificate, credentials.pairFor("impersonate")?.chain.trim() ?? "none");
  for (const trust of ["proven", "unproven", "private", undefined] as const)
    assert.is(credentials.pairFor(trust), undefined);
  assert.equal(
    credentials.certificates.map(({ name }) => name),
    ["front-proxy", "impersonator"],
  );
});

test("a renewed pair takes the old one's place by itself, and a backend that presents the old one is reported", async () => {
  put("front", first);
  await take(configOf(`, frontProxy: ${pairOf("front")}`));
  const told = new Promise<void>((resolve) => {
    onSwap = resolve;
  });
  put("front", second);
  await within(20_000, "the swap", told);
  assert.match(second.certificate, credentials.pairFor("front-proxy")?.chain.trim() ?? "none");
  assert.equal(swapped, ["front-proxy"]);
});

test("one bad pair takes neither, and the last good ones stay", async () => {
  put("front", first);
  await take(configOf(`, frontProxy: ${pairOf("front")}`));
  put("other", { ...second, key: first.key });
  const outcome = await credentials.prepare(both());
  assert.match(outcome instanceof Failure ? outcome.message : "", "other.crt");
  assert.match(first.certificate, credentials.pairFor("front-proxy")?.chain.trim() ?? "none");
  assert.is(credentials.pairFor("impersonate"), undefined);
});

test("what the configuration names no more stays for the connections that use it", async () => {
  put("front", first);
  await take(configOf(`, frontProxy: ${pairOf("front")}`));
  await take(configOf(""));
  assert.is.not(credentials.pairFor("front-proxy"), undefined);
});

test("a process that is told the proofs takes no other certificate's proof, and no connection of one that was not proven", async () => {
  let wasProven: boolean | undefined;
  let toldSwap = (): void => {};
  const told = new Credentials({
    clock: wallClock,
    journal: new Journal(wallClock),
    prefix: "",
    random: () => 0.5,
    onSwap: (_trust, was) => {
      wasProven = was("a");
      toldSwap();
    },
    backends: () => [],
    isReady: () => false,
    onProof: () => {},
    isTold: true,
  });
  put("front", first);
  const commit = await told.prepare(configOf(`, frontProxy: ${pairOf("front")}`));
  if (commit instanceof Failure) throw new Error(commit.message);
  commit();
  const proofs = (pair: Pair, verdict: "proven" | "refused"): void =>
    told.follow({
      "front-proxy": {
        fingerprint: new X509Certificate(pair.certificate).fingerprint256,
        backends: { a: { verdict, problem: "", gap: "", lost: 0 } },
      },
    });
  proofs(first, "refused");
  assert.not(told.isProven("front-proxy", "a"));
  const swap = new Promise<void>((resolve) => {
    toldSwap = resolve;
  });
  put("front", second);
  proofs(second, "proven");
  assert.not(told.isProven("front-proxy", "a"), "the file is not loaded yet");
  await within(20_000, "the swap", swap);
  assert.equal([told.isProven("front-proxy", "a"), wasProven], [true, false]);
  told.stop();
});

test.run();
