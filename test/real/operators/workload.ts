/**
 * Work for the controllers and operators: tasks that change, Deployments that are scaled, and pods that are created and
 * deleted. All writes go directly to an apiserver that is ready, so that none depends on the proxy.
 */
import { ask, order, type Server } from "../rig/ask.ts";
import { follow } from "../rig/etcd.ts";
import { until } from "../rig/until.ts";

const group = "rig.watchkeeper.dev";
const podsNamespace = "work";
const tasksEach = 3;
const deployments = 2;
/** Milliseconds between two changes of an operator's tasks. */
const taskEveryMs = 2_000;
const scaleEveryMs = 5_000;
const podEveryMs = 2_000;

const anything = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
const definition = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: `tasks.${group}` },
  spec: {
    group,
    scope: "Namespaced",
    names: { plural: "tasks", singular: "task", kind: "Task", listKind: "TaskList" },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: { openAPIV3Schema: { type: "object", properties: { spec: anything, status: anything } } },
      },
    ],
  },
};

type Stored = { readonly spec: { readonly turn: number }; readonly status?: { readonly turn?: number } };

/**
 * Milliseconds from the change of each task to the status that an operator writes for it. Both times are from etcd's
 * record.
 */
export class Reconciled {
  readonly latencies: { readonly at: number; readonly ms: number }[] = [];
  /**
   * When each turn without a status was written, by the key of the task. A turn is the number in the task's spec that
   * an operator copies into the status.
   */
  readonly #waiting = new Map<string, Map<number, number>>();
  #stop: () => void = () => undefined;

  async start(etcdUrl: string): Promise<void> {
    this.#stop = await follow(etcdUrl, `/registry/${group}/tasks/`, ({ kind, key, value, at }) => {
      if (kind === "PUT") this.#take(key, JSON.parse(value.toString()) as Stored, at);
    });
  }

  #take(key: string, { spec, status }: Stored, at: number): void {
    const waiting = this.#waiting.get(key) ?? new Map<number, number>();
    this.#waiting.set(key, waiting);
    const done = status?.turn ?? -1;
    if (spec.turn > done && !waiting.has(spec.turn)) waiting.set(spec.turn, at);
    for (const [turn, writtenAt] of waiting) {
      if (turn > done) continue;
      waiting.delete(turn);
      this.latencies.push({ at: writtenAt, ms: at - writtenAt });
    }
  }

  /** "namespace/name" of each task whose latest turn has no status yet. */
  get waiting(): readonly string[] {
    return [...this.#waiting]
      .filter(([, turns]) => turns.size > 0)
      .map(([key]) => key.split("/tasks/")[1] ?? key);
  }

  stop(): void {
    this.#stop();
  }
}

function pod(name: string): object {
  return { metadata: { name }, spec: { containers: [{ name: "main", image: "none" }] } };
}

function deployment(name: string): object {
  const labels = { app: name };
  const template = { metadata: { labels }, ...pod(name) };
  return {
    metadata: { name },
    spec: {
      replicas: 2,
      selector: { matchLabels: labels },
      template: { ...template, metadata: { labels } },
    },
  };
}

export class Workload {
  readonly reconciled = new Reconciled();
  /** Number of writes that an apiserver rejected. They make the workload lighter than planned. */
  failed = 0;
  written = 0;
  readonly #server: () => Server;
  readonly #names: readonly string[];
  readonly #timers: ReturnType<typeof setInterval>[] = [];
  #turn = 1;

  /** `server` returns an apiserver that is ready. `names` are the operators' namespaces. */
  constructor(server: () => Server, names: readonly string[]) {
    this.#server = server;
    this.#names = names;
  }

  /** Creates all objects. Called before the operators start. */
  async fill(etcdUrl: string): Promise<void> {
    const create = (path: string, body: object): Promise<string> =>
      order(this.#server(), { method: "POST", path, body });
    await create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition);
    const tasks = `/apis/${group}/v1/tasks`;
    await until(tasks, async () => (await ask(this.#server(), { path: tasks })).status === 200);
    await this.reconciled.start(etcdUrl);
    for (const namespace of [podsNamespace, ...this.#names])
      await create("/api/v1/namespaces", { metadata: { name: namespace } });
    for (const namespace of this.#names) {
      for (let number = 0; number < tasksEach; number += 1) {
        const body = {
          apiVersion: `${group}/v1`,
          kind: "Task",
          metadata: { name: `task-${number}` },
          spec: { turn: 1 },
        };
        await create(`/apis/${group}/v1/namespaces/${namespace}/tasks`, body);
      }
    }
    for (let number = 0; number < deployments; number += 1)
      await create(`/apis/apps/v1/namespaces/${podsNamespace}/deployments`, deployment(`web-${number}`));
  }

  start(): void {
    const every = (ms: number, write: () => Promise<void>): void => {
      this.#timers.push(setInterval(() => void write(), ms));
    };
    let tasks = 0;
    every(taskEveryMs / this.#names.length, async () => {
      const namespace = this.#names[tasks % this.#names.length] ?? "";
      const name = `task-${Math.floor(tasks / this.#names.length) % tasksEach}`;
      tasks += 1;
      await this.#merge(`/apis/${group}/v1/namespaces/${namespace}/tasks/${name}`, { turn: ++this.#turn });
    });
    let scales = 0;
    every(scaleEveryMs, async () => {
      const path = `/apis/apps/v1/namespaces/${podsNamespace}/deployments/web-${scales % deployments}`;
      scales += 1;
      await this.#merge(path, { replicas: 2 + (scales % 4) });
    });
    let pods = 0;
    every(podEveryMs, async () => {
      const path = `/api/v1/namespaces/${podsNamespace}/pods`;
      pods += 1;
      await this.#write({ method: "POST", path, body: pod(`single-${pods}`) });
      if (pods > 5) await this.#write({ method: "DELETE", path: `${path}/single-${pods - 5}` });
    });
  }

  #merge(path: string, spec: object): Promise<void> {
    return this.#write({
      method: "PATCH",
      path,
      body: { spec },
      contentType: "application/merge-patch+json",
    });
  }

  async #write(question: Parameters<typeof ask>[1]): Promise<void> {
    const answer = await ask(this.#server(), question, 5_000).catch(() => ({ status: 0, text: "" }));
    if (answer.status >= 200 && answer.status < 300) this.written += 1;
    else this.failed += 1;
  }

  stop(): void {
    for (const timer of this.#timers) clearInterval(timer);
  }
}
