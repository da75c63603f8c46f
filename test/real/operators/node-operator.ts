/**
 * An operator that uses @kubernetes/client-node, which uses HTTP/1.1 and has no leader election. It has informers of
 * tasks and of pods, and prints JSON lines in the form that lines.ts reads.
 */
import { setTimeout as sleep } from "node:timers/promises";
import {
  CoreV1Api,
  CustomObjectsApi,
  KubeConfig,
  type KubernetesListObject,
  type KubernetesObject,
  makeInformer,
  PatchStrategy,
  setHeaderOptions,
} from "@kubernetes/client-node";

type Task = KubernetesObject & {
  readonly spec: { readonly turn: number };
  readonly status?: { readonly turn?: number };
};

const flags = new Map(
  process.argv.slice(2).map((flag): [string, string] => {
    const [name = "", value = ""] = flag.split("=");
    return [name, value];
  }),
);
const namespace = flags.get("-name") ?? "";
const kind = { group: "rig.watchkeeper.dev", version: "v1", plural: "tasks" };
const config = new KubeConfig();
config.loadFromFile(flags.get("-kubeconfig") ?? "");
const core = config.makeApiClient(CoreV1Api);
const custom = config.makeApiClient(CustomObjectsApi);

function say(event: string, text: string): void {
  console.log(JSON.stringify({ event, at: Date.now(), text }));
}

const pods = makeInformer(config, "/api/v1/namespaces/work/pods", () =>
  core.listNamespacedPod({ namespace: "work" }),
);
const tasks = makeInformer<Task>(
  config,
  `/apis/${kind.group}/${kind.version}/namespaces/${namespace}/${kind.plural}`,
  () => custom.listNamespacedCustomObject({ ...kind, namespace }) as Promise<KubernetesListObject<Task>>,
);

async function reconcile({ metadata, spec, status }: Task): Promise<void> {
  const name = metadata?.name ?? "";
  if (status?.turn === spec.turn) return;
  const body = { status: { turn: spec.turn, pods: pods.list("work").length } };
  const merge = setHeaderOptions("Content-Type", PatchStrategy.MergePatch);
  for (let left = 10; left > 0; left -= 1) {
    try {
      await custom.patchNamespacedCustomObjectStatus({ ...kind, namespace, name, body }, merge);
      return;
    } catch (error) {
      say("error", `PATCH ${name}: ${String(error)}`);
      await sleep(1_000);
    }
  }
}

for (const [name, informer] of Object.entries({ pods, tasks })) {
  // From the library's own example: an informer that gets an error stops until it is started again.
  informer.on("error", (error: unknown) => {
    say("closed", `${name}: ${String(error)}`);
    setTimeout(() => void informer.start(), 1_000);
  });
}
tasks.on("change", (task) => void reconcile(task));
await pods.start();
await tasks.start();
