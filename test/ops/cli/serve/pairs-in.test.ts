import { basename } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { pairsIn } from "../../../../src/ops/cli/serve/check.ts";
import { loadConfig, parseConfig } from "../../../../src/ops/config/config.ts";
import { isProblems } from "../../../../src/ops/config/problem.ts";

const test = suite("cli/serve/check: pairs");

function told(config: ReturnType<typeof parseConfig>): string[] {
  if (isProblems(config)) throw new Error(JSON.stringify(config));
  return pairsIn(config).map(({ what, name, files }) => `${what} ${name}: ${basename(files.certFile)}`);
}

test("of several clusters each pair has its cluster's name before its own, and a passthrough has none", () => {
  assert.equal(told(loadConfig("config/clusters.yaml")), [
    "listener kube: tls.crt",
    "host kube/kube.us.example.com: tls.crt",
    " us/front-proxy: front-proxy-client.crt",
  ]);
});

test("of one cluster they have no name; the API's comes last, and a client CA belongs to its listener or host", () => {
  const text = `apiVersion: watchkeeper.dev/v1alpha2
kind: WatchkeeperConfiguration
listeners:
  - name: kube
    address: "127.0.0.1:0"
    tls: {certFile: a.crt, keyFile: a.key}
    hosts:
      - serverNames: [b.example.com]
        tls: {certFile: b.crt, keyFile: b.key, clientCAFile: b-ca.crt}
        identity: {clientCerts: Impersonate}
clusters:
  - name: default
    backends: [{name: cp-1, url: "https://10.0.0.11"}]
    tls: {caFile: ca.crt, impersonator: {certFile: c.crt, keyFile: c.key}}
admin: {tls: {certFile: d.crt, keyFile: d.key}}
`;
  const config = parseConfig(text, "wk.yaml");
  assert.equal(told(config), [
    "listener kube: a.crt",
    "host kube/b.example.com: b.crt",
    " impersonator: c.crt",
    " admin: d.crt",
  ]);
  if (isProblems(config)) return;
  const files = pairsIn(config).map((pair) => basename(pair.files.clientCaFile ?? ""));
  assert.equal(files, ["", "b-ca.crt", "", ""]);
});

test.run();
