/** Two real clusters behind one port of one proxy. Each cluster has its own CA, etcd and authorization policy. */

import { once } from "node:events";
import { readFileSync } from "node:fs";
import { type IncomingMessage } from "node:http";
import https from "node:https";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { within } from "../support/within.ts";
import { order } from "./rig/ask.ts";
import { type Cluster, startCluster } from "./rig/cluster.ts";
import { clusterNeeds, testWith } from "./rig/parts.ts";
import type { Pair } from "./rig/pki.ts";
import { Proxy } from "./rig/proxy.ts";

const test = suite("real/clusters");
const real = testWith(test, clusterNeeds);

const configMaps = "/api/v1/namespaces/default/configmaps";
const serverName = "kubernetes.default.svc";

let eu: Cluster;
let us: Cluster;
let proxy: Proxy;

function clusterOf(name: string, { apiservers, caFile, frontProxy }: Cluster): object {
  const backends = apiservers.map((one, at) => ({ name: `cp-${at}`, url: one.url }));
  return { name, backends, tls: { caFile, serverName, frontProxy } };
}

async function create({ admin }: Cluster, name: string): Promise<void> {
  const body = { apiVersion: "v1", kind: "ConfigMap", metadata: { name } };
  await order(admin, { method: "POST", path: configMaps, body });
}

test.before(async () => {
  if (!real.canRun) return;
  eu = await startCluster({ apiservers: 1, flags: ["--requestheader-uid-headers=X-Remote-Uid"] });
  us = await startCluster({ apiservers: 2 });
  await create(eu, "only-eu");
  await create(us, "only-us");
  const host = us.pki.issue({ name: "us-host", subject: "/CN=us", names: ["DNS:us.test"] });
  proxy = await Proxy.start({
    folder: eu.folder,
    pki: eu.pki,
    backends: [],
    listener: {
      cluster: "eu",
      identity: { clientCerts: "FrontProxy" },
      hosts: [{ serverNames: ["us.test"], cluster: "us", tls: host }],
    },
    listenerTls: { clientCAFile: eu.caFile },
    config: { clusters: [clusterOf("eu", eu), clusterOf("us", us)] },
  });
  await proxy.settled(3);
});

test.after(async () => {
  if (!real.canRun) return;
  await proxy.stop();
  await Promise.all([eu.stop(), us.stop()]);
});

type Asking = {
  readonly method?: string;
  readonly body?: object;
  readonly pair?: Pair;
  readonly host?: string;
};

/**
 * Sends a request on a new connection and resolves with the response's head. The server name selects the cluster. The
 * request has the token of the cluster's admin, unless `asking` has a client certificate.
 */
async function open(name: "eu" | "us", path: string, asking: Asking = {}): Promise<IncomingMessage> {
  const { method = "GET", body, pair } = asking;
  const [cluster, servername] = name === "eu" ? [eu, "localhost"] : [us, "us.test"];
  const shown = pair && { cert: readFileSync(pair.certFile), key: readFileSync(pair.keyFile) };
  const authorization = pair === undefined ? { authorization: `Bearer ${cluster.token}` } : {};
  const request = https.request({
    host: "127.0.0.1",
    port: proxy.port,
    servername,
    ca: readFileSync(cluster.caFile),
    path,
    method,
    headers: { host: asking.host ?? servername, "content-type": "application/json", ...authorization },
    agent: false,
    ...shown,
  });
  request.end(body === undefined ? undefined : JSON.stringify(body));
  const [response] = (await within(20_000, `${name}'s answer`, once(request, "response"))) as [
    IncomingMessage,
  ];
  return response;
}

async function ask(...asked: Parameters<typeof open>): Promise<string> {
  const response = await open(...asked);
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return `${response.statusCode} ${Buffer.concat(chunks).toString()}`;
}

real("each host shows its own cluster's certificate and objects, and none of the other's", async () => {
  assert.match(await ask("eu", `${configMaps}/only-eu`), /^200 /);
  assert.match(await ask("us", `${configMaps}/only-us`), /^200 /);
  assert.match(await ask("us", `${configMaps}/only-eu`), /^404 /);
  assert.match(await ask("eu", `${configMaps}/only-us`), /^404 /);
  assert.match(await ask("eu", `${configMaps}/only-eu`, { host: "us.test" }), /^421 /);
});

real(
  "a client certificate identifies a user in the cluster that trusts its CA, and is refused by the other",
  async () => {
    const alice = eu.pki.issue({ name: "alice", subject: "/O=readers/CN=alice" });
    const review = { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" };
    const path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    const asking = { method: "POST", body: review, pair: alice };
    assert.match(await ask("eu", path, asking), /^201 .*"username":"alice"/);
    assert.match(await ask("us", path, asking), /^403 .*takes no client certificates/);
  },
);

real(
  "a black hole in one: its watch goes on at its own other apiserver; with both gone only its clients are told 503",
  async () => {
    const version = /"resourceVersion":"(\d+)"/.exec(await ask("us", `${configMaps}?limit=1`))?.[1] ?? "";
    const watch = await open("us", `${configMaps}?watch=true&resourceVersion=${version}`);
    let events = "";
    watch.on("data", (chunk: Buffer) => (events += chunk.toString()));
    const shows = (name: string): Promise<void> =>
      within(
        20_000,
        name,
        new Promise((resolve) => {
          const look = (): void => {
            if (!events.includes(`"name":"${name}"`)) return;
            watch.off("data", look);
            resolve();
          };
          watch.on("data", look);
          look();
        }),
      );
    await create(us, "before");
    await shows("before");
    // The rig's own requests go to the last apiserver, so the last apiserver goes into the black hole second.
    us.apiserver(0).blackHole("both");
    await create(us, "under-one-hole");
    await shows("under-one-hole");
    assert.match(await ask("us", `${configMaps}/only-us`), /^200 /);
    us.apiserver(1).blackHole("both");
    await proxy.settled(1);
    assert.match(await ask("us", `${configMaps}/only-us`), /^503 /);
    for (let asked = 0; asked < 10; asked += 1)
      assert.match(await ask("eu", `${configMaps}/only-eu`), /^200 /);
    for (const apiserver of us.apiservers) apiserver.heal();
    await proxy.settled(3);
    assert.match(await ask("us", `${configMaps}/only-us`), /^200 /);
  },
);

test.run();
