/**
 * A program that uses @kubernetes/client-node as in a pod: it watches ConfigMaps, creates and deletes some, and prints
 * the events it received as one line of JSON. `node in-cluster.ts NAMESPACE COUNT`
 */
import { CoreV1Api, KubeConfig, Watch } from "@kubernetes/client-node";

type Seen = [kind: string, name: string, version: string];
type Object = { readonly metadata: { readonly name: string; readonly resourceVersion: string } };

const [namespace = "default", count = "1"] = process.argv.slice(2);
const config = new KubeConfig();
config.loadFromCluster();
const api = config.makeApiClient(CoreV1Api);
const names = Array.from({ length: Number(count) }, (_, number) => `node-${number}`);
const before = await api.listNamespacedConfigMap({ namespace });
const events: Seen[] = [];
const sawAll = Promise.withResolvers<undefined>();
const watch = await new Watch(config).watch(
  `/api/v1/namespaces/${namespace}/configmaps`,
  { resourceVersion: before.metadata?.resourceVersion },
  (kind: string, { metadata }: Object) => {
    events.push([kind, metadata.name, metadata.resourceVersion]);
    if (events.length === 2 * names.length) sawAll.resolve(undefined);
  },
  (error) => sawAll.reject(error as Error),
);
for (const name of names) await api.createNamespacedConfigMap({ namespace, body: { metadata: { name } } });
for (const name of names) await api.deleteNamespacedConfigMap({ namespace, name });
await sawAll.promise;
watch.abort();
process.stdout.write(`${JSON.stringify({ before: before.items.length, names, events })}\n`);
