/**
 * Kubelet-like clients with certificates that are valid for only minutes, in front of real kube-apiservers. At one
 * host, the proxy passes their identity on with a front-proxy certificate that is as short-lived; at another host, by
 * impersonation. No client may ever get a 401.
 */
import { readFileSync, renameSync } from "node:fs";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Kubelet, newFelt, type OwnPair, toldOf } from "../support/kubelets.ts";
import { seeded } from "../support/random.ts";
import { type Cluster, startCluster } from "./rig/cluster.ts";
import { clusterNeeds, figure, testWith } from "./rig/parts.ts";
import type { Pair } from "./rig/pki.ts";
import { Proxy } from "./rig/proxy.ts";

const test = suite("real/short-certificates");
const real = testWith(test, clusterNeeds);

const lifeSeconds = Number(process.env["CERTIFICATE_SECONDS"] ?? 20);
const forSeconds = Number(process.env["SHORT_SECONDS"] ?? 60);
const count = 20;
const impersonating = "kubernetes";

let cluster: Cluster;
let proxy: Proxy | undefined;
const stops: (() => void)[] = [];

test.before(async () => {
  if (real.canRun) cluster = await startCluster({ apiservers: 2 });
});

test.after(async () => {
  for (const stop of stops) stop();
  await proxy?.stop();
  if (real.canRun) await cluster.stop();
});

function read({ certFile, keyFile }: Pair): OwnPair {
  return { certificate: readFileSync(certFile, "utf8"), key: readFileSync(keyFile, "utf8") };
}

/** Replaces a certificate of the proxy at half of its lifetime: first the certificate's file, then the key's file. */
function keepFresh(name: string, subject: string, issuer: Pair): Pair {
  const issue = (): Pair => cluster.pki.issueFor(lifeSeconds, { name: `${name}-next`, subject }, issuer);
  const { folder } = cluster.pki;
  const files = { certFile: `${folder}/${name}.crt`, keyFile: `${folder}/${name}.key` };
  const put = ({ certFile, keyFile }: Pair): void => {
    renameSync(certFile, files.certFile);
    renameSync(keyFile, files.keyFile);
  };
  put(issue());
  const timer = setInterval(() => put(issue()), lifeSeconds * 500);
  stops.push(() => clearInterval(timer));
  return files;
}

async function startProxy(): Promise<Proxy> {
  const { folder, pki } = cluster;
  const backends = cluster.apiservers.map(({ name, url }) => ({ name, url }));
  const frontProxy = keepFresh("own-front-proxy", "/CN=front-proxy-client", pki.frontProxyCa);
  const impersonator = keepFresh("own-impersonator", "/O=system:masters/CN=impersonator", pki.ca);
  const host = pki.issue({
    name: "host",
    subject: "/CN=host",
    names: [`DNS:${impersonating}`, "IP:127.0.0.1"],
  });
  const reloadInterval = "1s";
  return Proxy.start({
    folder,
    pki,
    backends,
    listener: {
      identity: { clientCerts: "FrontProxy" },
      hosts: [
        {
          serverNames: [impersonating],
          tls: { ...host, clientCAFile: pki.ca.certFile },
          identity: { clientCerts: "Impersonate" },
        },
      ],
    },
    listenerTls: { clientCAFile: pki.ca.certFile },
    config: {
      clusters: [
        {
          name: "default",
          backends,
          tls: {
            caFile: pki.ca.certFile,
            serverName: "kubernetes.default.svc",
            frontProxy: { ...frontProxy, reloadInterval },
            impersonator: { ...impersonator, reloadInterval },
          },
        },
      ],
    },
  });
}

real(`certificates of ${lifeSeconds} s cost no client a request in ${forSeconds} s`, async () => {
  const running = await startProxy();
  proxy = running;
  await running.settled(2);
  const random = seeded(1);
  const felt = newFelt();
  let issued = 0;
  const issue = (name: string): OwnPair => {
    issued += 1;
    const subject = `/O=readers/CN=${name}`;
    return read(cluster.pki.issueFor(lifeSeconds, { name: `kubelet-${issued}`, subject }));
  };
  for (let at = 0; at < count; at += 1) {
    const kubelet = new Kubelet(
      {
        name: `node-${at}`,
        port: running.port,
        ca: readFileSync(cluster.caFile, "utf8"),
        serverName: at % 4 < 2 ? "localhost" : impersonating,
        paths: {
          get: "/api/v1/nodes?resourceVersion=0",
          watch: "/api/v1/configmaps?watch=1&timeoutSeconds=3600",
        },
        lifeMs: lifeSeconds * 1000,
        issue,
        everyMs: 500,
        kind: at % 2 === 0 ? "kubelet" : "controller",
        random: () => random.below(1000) / 1000,
      },
      felt,
    );
    stops.push(() => kubelet.stop());
  }
  await new Promise((resolve) => setTimeout(resolve, forSeconds * 1000));
  figure(`${count} clients, ${lifeSeconds} s certificates, ${forSeconds} s: ${toldOf(felt)}`);
  assert.equal([...felt.statuses.keys()], ["200"], `nothing but 200\n${running.tail()}`);
  assert.equal([...felt.watchEnds], [], "no watch ended but by its own client's wish");
  assert.ok((felt.statuses.get("200") ?? 0) > forSeconds * count, "they were busy");
  assert.ok(
    felt.certificates > (count * forSeconds) / lifeSeconds,
    "and had other certificates again and again",
  );
});

test.run();
