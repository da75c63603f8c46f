import { fileURLToPath } from "node:url";
import { CoreV1Api, KubeConfig, Watch } from "@kubernetes/client-node";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { within } from "../support/within.ts";
import { order } from "./rig/ask.ts";
import { Call, call } from "./rig/call.ts";
import { type Cluster, startCluster } from "./rig/cluster.ts";
import { clusterNeeds, figure, pathOf, pythonPath, testWith } from "./rig/parts.ts";
import { Proxy } from "./rig/proxy.ts";

const test = suite("real/clients");
const real = testWith(test, [...clusterNeeds, "informer", "python"]);

let cluster: Cluster;
let proxy: Proxy;

test.before(async () => {
  if (!real.canRun) return;
  cluster = await startCluster({ apiservers: 2 });
  const backends = cluster.apiservers.map(({ name, url }) => ({ name, url }));
  proxy = await Proxy.start({ folder: cluster.folder, pki: cluster.pki, backends });
});

test.after(async () => {
  if (!real.canRun) return;
  await proxy.stop();
  await cluster.stop();
});

/** Creates a namespace for the test at an apiserver, not through the proxy. */
async function namespaceNamed(name: string): Promise<string> {
  const body = { apiVersion: "v1", kind: "Namespace", metadata: { name } };
  await order(cluster.admin, { method: "POST", path: "/api/v1/namespaces", body });
  return name;
}

type Listed = {
  readonly items: readonly {
    readonly metadata: { readonly name: string; readonly resourceVersion: string };
  }[];
};

/** Returns the resource version of each object by its name, read directly from an apiserver. */
async function objectsOf(namespace: string): Promise<Record<string, string>> {
  const text = await order(cluster.admin, { path: `/api/v1/namespaces/${namespace}/configmaps` });
  const { items } = JSON.parse(text) as Listed;
  return Object.fromEntries(items.map(({ metadata }) => [metadata.name, metadata.resourceVersion]));
}

type Summary = {
  readonly added: number;
  readonly updated: number;
  readonly deleted: number;
  readonly lists: number;
  readonly streamed: number;
  readonly fails: number;
  readonly backwards: number;
  readonly contentType: string;
  readonly objects: Record<string, string>;
};

const contentTypes = {
  json: "application/json",
  protobuf: "application/vnd.kubernetes.protobuf;stream=watch",
};

for (const [content, contentType] of Object.entries(contentTypes)) {
  real(`client-go's informer (${content}) sees every change once and lists once`, async () => {
    const namespace = await namespaceNamed(`informer-${content}`);
    const collection = `/api/v1/namespaces/${namespace}/configmaps`;
    const create = (name: string): Promise<string> =>
      order(cluster.admin, {
        method: "POST",
        path: collection,
        body: {
          apiVersion: "v1",
          kind: "ConfigMap",
          metadata: { name },
          data: { filler: "x".repeat(2_000) },
        },
      });
    for (let number = 0; number < 20; number++) await create(`old-${number}`);

    const args = [
      `-kubeconfig=${cluster.kubeconfig(proxy.url)}`,
      `-namespace=${namespace}`,
      `-content=${content}`,
    ];
    const informer = new Call(pathOf("informer"), [...args, "-for=60s"]);
    await informer.says(/"kind":"synced"/);
    for (let number = 0; number < 100; number++) await create(`new-${number}`);
    for (let number = 0; number < 100; number++) {
      const body = { data: { changed: "yes" } };
      const path = `${collection}/new-${number}`;
      await order(cluster.admin, {
        method: "PATCH",
        path,
        body,
        contentType: "application/merge-patch+json",
      });
    }
    for (let number = 0; number < 50; number++) {
      await order(cluster.admin, { method: "DELETE", path: `${collection}/new-${number}` });
    }
    await informer.says(/"kind":"deleted","name":"new-49"/);
    informer.signal("SIGTERM");
    const { out, err } = await informer.ended;
    const summary = JSON.parse(out.trimEnd().split("\n").at(-1) ?? "") as Summary;
    const { added, updated, deleted, lists, streamed, fails, backwards } = summary;
    assert.equal(
      { added, updated, deleted, listed: lists + streamed, fails, backwards },
      { added: 120, updated: 100, deleted: 50, listed: 1, fails: 0, backwards: 0 },
      err,
    );
    figure(`informer (${content}): ${added + updated + deleted} events, ${lists + streamed} list`);
    assert.is(summary.contentType, contentType);
    assert.equal(summary.objects, await objectsOf(namespace));
  });
}

type Seen = [kind: string, name: string, version: string];

/** Checks that each object was added once and deleted once, in the order of versions. */
function checkStory(events: readonly Seen[], names: readonly string[]): void {
  assert.equal(
    events.map(([kind, name]) => `${kind} ${name}`),
    ["ADDED", "DELETED"].flatMap((kind) => names.map((name) => `${kind} ${name}`)),
  );
  const versions = events.map(([, , version]) => Number(version));
  assert.equal(
    versions,
    versions.toSorted((a, b) => a - b),
  );
}

real("the Python client lists in pages, watches, creates and deletes", async () => {
  const namespace = await namespaceNamed("python");
  const script = fileURLToPath(new URL("python/story.py", import.meta.url));
  const said = await call(pythonPath(), [script, cluster.kubeconfig(proxy.url), namespace, "30"]);
  assert.is(said.code, 0, said.err);
  const story = JSON.parse(said.out) as { before: number; names: string[]; pages: number; events: Seen[] };
  assert.is(story.before, 0);
  assert.is(story.pages, 5);
  const names = Array.from({ length: 30 }, (_, number) => `python-${number}`);
  assert.equal(story.names.toSorted(), names.toSorted());
  checkStory(story.events, names);
});

real("@kubernetes/client-node lists, watches, creates and deletes", async () => {
  const namespace = await namespaceNamed("client-node");
  const config = new KubeConfig();
  config.loadFromFile(cluster.kubeconfig(proxy.url));
  const api = config.makeApiClient(CoreV1Api);
  const before = await api.listNamespacedConfigMap({ namespace });
  assert.is(before.items.length, 0);

  const names = Array.from({ length: 30 }, (_, number) => `node-${number}`);
  const events: Seen[] = [];
  const { promise: sawAll, resolve, reject } = Promise.withResolvers<undefined>();
  type Object = { readonly metadata: { readonly name: string; readonly resourceVersion: string } };
  const path = `/api/v1/namespaces/${namespace}/configmaps`;
  const query = { resourceVersion: before.metadata?.resourceVersion };
  const onEvent = (kind: string, object: Object): void => {
    events.push([kind, object.metadata.name, object.metadata.resourceVersion]);
    if (events.length === 2 * names.length) resolve(undefined);
  };
  const watch = await new Watch(config).watch(path, query, onEvent, (error) => reject(error as Error));
  for (const name of names) await api.createNamespacedConfigMap({ namespace, body: { metadata: { name } } });
  const listed = await api.listNamespacedConfigMap({ namespace });
  assert.equal(listed.items.map((item) => item.metadata?.name ?? "").toSorted(), names.toSorted());
  for (const name of names) await api.deleteNamespacedConfigMap({ namespace, name });
  await within(20_000, `${2 * names.length} events`, sawAll);
  watch.abort();
  checkStory(events, names);
});

test.run();
