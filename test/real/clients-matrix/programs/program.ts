/**
 * Operations of @kubernetes/client-node, as programs.ts describes them: `program.ts KUBECONFIG NAMESPACE
 * crud|watch|exec|logs`
 */
import { PassThrough } from "node:stream";
import {
  ApiException,
  CoreV1Api,
  Exec,
  KubeConfig,
  Log,
  type V1ConfigMap,
  Watch,
} from "@kubernetes/client-node";

const [kubeconfig = "", namespace = "", act = ""] = process.argv.slice(2);
const config = new KubeConfig();
config.loadFromFile(kubeconfig);
const api = config.makeApiClient(CoreV1Api);

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

function configMap(value: string): V1ConfigMap {
  return { metadata: { name: "a" }, data: { key: value } };
}

async function crud(): Promise<void> {
  const at = { namespace, name: "a" };
  const value = ({ data }: V1ConfigMap): string => data?.["key"] ?? "";
  say(`created ${value(await api.createNamespacedConfigMap({ namespace, body: configMap("one") }))}`);
  say(`read ${value(await api.readNamespacedConfigMap(at))}`);
  say(`replaced ${value(await api.replaceNamespacedConfigMap({ ...at, body: configMap("two") }))}`);
  const body = [{ op: "replace", path: "/data/key", value: "three" }];
  say(`patched ${value(await api.patchNamespacedConfigMap({ ...at, body }))}`);
  const { items } = await api.listNamespacedConfigMap({ namespace });
  say(`listed ${items.map(({ metadata }) => metadata?.name).join(" ")}`);
  await api.deleteNamespacedConfigMap(at);
  say("deleted");
  const error = await api.readNamespacedConfigMap(at).catch((thrown: unknown) => thrown);
  say(error instanceof ApiException && error.code === 404 ? "not found" : String(error));
}

async function watch(): Promise<void> {
  const list = await api.listNamespacedConfigMap({ namespace });
  say("listed");
  const over = Promise.withResolvers<number>();
  await new Watch(config).watch(
    `/api/v1/namespaces/${namespace}/configmaps`,
    { resourceVersion: list.metadata?.resourceVersion },
    (kind: string, { metadata }: { readonly metadata: { readonly name: string } }) => {
      say(`${kind} ${metadata.name}`);
      if (metadata.name === "last") over.resolve(0);
    },
    (error: unknown) => {
      say(`watch ended: ${String(error)}`);
      over.resolve(1);
    },
  );
  process.exit(await over.promise);
}

async function exec(): Promise<void> {
  const over = Promise.withResolvers<number>();
  const socket = await new Exec(config).exec(
    namespace,
    "shell",
    "main",
    ["sh"],
    process.stdout,
    process.stderr,
    process.stdin,
    false,
    ({ details }) => over.resolve(Number(details?.causes?.[0]?.message ?? 0)),
  );
  socket.on("close", () => over.resolve(1));
  process.exit(await over.promise);
}

async function logs(): Promise<void> {
  const lines = new PassThrough();
  lines.pipe(process.stdout);
  await new Log(config).log(namespace, "shell", "main", lines, { follow: true });
  lines.on("end", () => {
    say("log ended");
    process.exit(1);
  });
}

const acts: Readonly<Record<string, () => Promise<void>>> = { crud, watch, exec, logs };
await acts[act]?.();
