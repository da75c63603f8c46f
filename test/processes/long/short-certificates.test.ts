/**
 * Kubelet-like clients whose certificates expire within seconds. So does the front-proxy certificate of the proxy. All
 * are renewed in time, and no client may get a 401. The long form on real kube-apiservers is
 * test/real/short-certificates.test.ts.
 */
import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { Pair } from "../../../src/ops/pki/pki.ts";
import { frontProxyPki, type JudgingBackend, startJudge } from "../../support/front-proxy.ts";
import { Kubelet, newFelt, toldOf } from "../../support/kubelets.ts";
import { startProxy, type TestProxy } from "../../support/proxy.ts";
import { seeded } from "../../support/random.ts";

const test = suite("long/short-certificates");

const lifeMs = 1000 * Number(process.env["CERTIFICATE_SECONDS"] ?? 16);
const seconds = Number(process.env["SHORT_SECONDS"] ?? 24);

test("certificates that last for seconds cost no client a request", async () => {
  const pki = await frontProxyPki();
  const own = (): Pair =>
    pki.authority.issue({ name: "front-proxy-client", usage: "client", notAfter: Date.now() + lifeMs });
  const first = own();
  const judges = [await startJudge("one", pki), await startJudge("two", pki)];
  const proxy = await startProxy({
    backends: 0,
    targets: judges,
    files: {
      "clients.crt": pki.clients.certificate,
      "front-proxy.crt": first.certificate,
      "front-proxy.key": first.key,
    },
    listenerTls: "clientCAFile: clients.crt",
    listener: "identity: {clientCerts: FrontProxy}",
    upstreamTls: "frontProxy: {certFile: front-proxy.crt, keyFile: front-proxy.key, reloadInterval: 200ms}",
  });
  const renewals = setInterval(() => renew(proxy, own()), lifeMs / 2);
  const felt = newFelt();
  const random = seeded(1);
  const kubelets = Array.from(
    { length: 12 },
    (_, at) =>
      new Kubelet(
        {
          name: `node-${at}`,
          port: proxy.port,
          ca: proxy.ca,
          serverName: "localhost",
          paths: { get: "/api/v1/nodes", watch: "/api/v1/configmaps?watch=1" },
          lifeMs,
          issue: (name) =>
            pki.clients.issue({ name, groups: ["nodes"], usage: "client", notAfter: Date.now() + lifeMs }),
          everyMs: 100,
          kind: at % 2 === 0 ? "kubelet" : "controller",
          random: () => random.below(1000) / 1000,
        },
        felt,
      ),
  );
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  clearInterval(renewals);
  for (const kubelet of kubelets) kubelet.stop();
  process.stdout.write(`\nfigure: ${lifeMs / 1000} s certificates for ${seconds} s: ${toldOf(felt)}\n`);
  const shown = new Set(judges.flatMap(({ seen }) => seen.map((one) => one.shown)));
  const connections = judges.reduce((sum, judge: JudgingBackend) => sum + judge.sockets.length, 0);
  await proxy.stop();
  for (const judge of judges) judge.stop();
  assert.equal([...felt.statuses.keys()], ["200"], "nothing but 200");
  assert.equal([...felt.watchEnds], [], "no watch ended but by its own client's wish");
  assert.ok((felt.statuses.get("200") ?? 0) > seconds * 12, "they were busy");
  assert.ok(felt.certificates > (12 * seconds * 1000) / lifeMs, "and had other certificates again and again");
  assert.ok(felt.sentAway > 0, "those that keep their connections are told to come again");
  assert.equal([...shown], ["front-proxy-client"]);
  assert.ok(connections > (2 * seconds * 1000) / lifeMs, "and so had the proxy");
});

/**
 * Replaces the files one after the other, as the kubelet does. Between the two steps certificate and key do not match.
 */
function renew({ directory }: TestProxy, { certificate, key }: Pair): void {
  for (const [name, text] of Object.entries({ "front-proxy.crt": certificate, "front-proxy.key": key })) {
    writeFileSync(join(directory, `${name}.new`), text, { mode: 0o600 });
    renameSync(join(directory, `${name}.new`), join(directory, name));
  }
}

test.run();
