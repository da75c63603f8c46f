/** kubectl commands that read, write, or wait for a change. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as assert from "uvu/assert";
import type { Call, CallOptions, Output } from "../rig/call.ts";
import { type Program, pathOf } from "../rig/parts.ts";
import { eventsOf, type Operation, type Run, type Scene, waitFlag, watchedEvents } from "./operation.ts";

/** Runs one kubectl program within one scene. */
export class Kubectl {
  readonly #program: Program;
  readonly #scene: Scene;

  constructor(program: Program, scene: Scene) {
    this.#program = program;
    this.#scene = scene;
  }

  #args(args: readonly string[]): string[] {
    return [`--kubeconfig=${this.#scene.kubeconfigFile}`, `--namespace=${this.#scene.namespace}`, ...args];
  }

  run(args: readonly string[], options: Run = {}): Promise<Output> {
    return this.#scene.run(pathOf(this.#program), this.#args(args), options);
  }

  start(args: readonly string[], options: CallOptions = {}): Call {
    return this.#scene.start(pathOf(this.#program), this.#args(args), options);
  }

  end(call: Call, args: readonly string[], options: Run = {}): Promise<Output> {
    return this.#scene.end(call, args, options);
  }
}

export type Act = (kubectl: Kubectl, scene: Scene) => Promise<void>;

type Data = { readonly data: Readonly<Record<string, string>> };

function configMap(value: string): string {
  const object = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a" }, data: { key: value } };
  return JSON.stringify(object);
}

/** Fails unless the ConfigMap "a" has this value on the apiserver. */
async function holds(scene: Scene, value: string): Promise<void> {
  assert.is((await scene.object<Data>(scene.path("configmaps/a")))?.data["key"], value);
}

async function read(kubectl: Kubectl, scene: Scene): Promise<void> {
  await scene.pod("shell", { app: "shell" });
  for (const name of ["a", "b", "c", "d", "e"]) await scene.configMap(name, name);
  await kubectl.run(["get", "pods", "-o", "wide"]);
  await kubectl.run(["get", "pods", "-l", "app=shell", "-o", "yaml"]);
  await kubectl.run(["describe", "pod", "shell"]);
  const { out } = await kubectl.run(["get", "configmaps", "--chunk-size=2", "-o", "name"]);
  assert.is(out.trim().split("\n").length, 5);
  await kubectl.run(["get", "configmap", "z"], { exit: 1 });
  await kubectl.run(["get", "--raw", "/readyz"]);
}

async function discovery(kubectl: Kubectl): Promise<void> {
  await kubectl.run(["version"]);
  await kubectl.run(["api-resources"]);
  await kubectl.run(["api-versions"]);
  await kubectl.run(["explain", "deployment.spec.strategy", "--recursive"]);
  await kubectl.run(["auth", "can-i", "--list"]);
  await kubectl.run(["auth", "whoami", "-o", "yaml"]);
}

async function serverSide(kubectl: Kubectl, scene: Scene): Promise<void> {
  const apply = (value: string, ...more: string[]): [string[], Run] => [
    ["apply", "--server-side", "-f", "-", ...more],
    { input: configMap(value) },
  ];
  await kubectl.run(...apply("one"));
  await holds(scene, "one");
  const [args, options] = apply("two", "--field-manager=other");
  const conflict = await kubectl.run(args, { ...options, exit: 1 });
  assert.match(conflict.err, /conflict/);
  await holds(scene, "one");
  await kubectl.run(...apply("two", "--field-manager=other", "--force-conflicts"));
  await holds(scene, "two");
  await kubectl.run(["get", "configmap", "a", "-o", "yaml", "--show-managed-fields"]);
}

async function write(kubectl: Kubectl, scene: Scene): Promise<void> {
  const apply = ["apply", "-f", "-"];
  await kubectl.run(apply, { input: configMap("one") });
  await kubectl.run(apply, { input: configMap("one") });
  const differs = await kubectl.run(["diff", "-f", "-"], {
    input: configMap("two"),
    exit: 1,
    shows: ({ out }) => out.replace(/^(diff|---|\+\+\+) .*$/gm, "$1"), // temporary files
  });
  assert.match(differs.out, /^\+ {2}key: two$/m);
  await kubectl.run(apply, { input: configMap("two") });
  await holds(scene, "two");
  for (const [type, patch] of [
    ["merge", '{"data":{"key":"merge"}}'],
    ["strategic", '{"data":{"key":"strategic"}}'],
    ["json", '[{"op":"replace","path":"/data/key","value":"json"}]'],
  ] as const) {
    await kubectl.run(["patch", "configmap", "a", `--type=${type}`, "-p", patch]);
    await holds(scene, type);
  }
  await kubectl.run(["label", "configmap", "a", "colour=green"]);
  await kubectl.run(["replace", "-f", "-"], { input: configMap("replaced") });
  await holds(scene, "replaced");
  await kubectl.run(["create", "configmap", "a"], { exit: 1 });
  await kubectl.run(["delete", "configmap", "a"]);
  assert.is(await scene.object(scene.path("configmaps/a")), undefined);
}

async function kustomize(kubectl: Kubectl, scene: Scene): Promise<void> {
  const overlay = writeKustomization(scene);
  await kubectl.run(["kustomize", overlay]);
  await kubectl.run(["apply", "-k", overlay]);
  const object = await scene.object<Data>(scene.path("configmaps/blue-a"));
  assert.is(object?.data["key"], "from the overlay");
  await kubectl.run(["delete", "-k", overlay]);
}

/** Writes a base with a ConfigMap, and an overlay that renames and patches it. Returns the overlay's folder. */
export function writeKustomization(scene: Scene): string {
  const [base, overlay] = [join(scene.folder, "base"), join(scene.folder, "overlay")];
  for (const folder of [base, overlay]) mkdirSync(folder);
  writeFileSync(join(base, "configmap.json"), configMap("from the base"));
  writeFileSync(join(base, "kustomization.yaml"), "resources: [configmap.json]\n");
  const patches = [{ patch: configMap("from the overlay") }];
  const kustomization = { resources: ["../base"], namePrefix: "blue-", patches };
  writeFileSync(join(overlay, "kustomization.yaml"), JSON.stringify(kustomization));
  return overlay;
}

async function getWatch(kubectl: Kubectl, scene: Scene): Promise<void> {
  await scene.configMap("first", "one");
  const args = ["get", "configmaps", "-w", "--output-watch-events"];
  const watch = kubectl.start(args);
  await watch.says(/ADDED +first/);
  await scene.hold();
  await scene.changeConfigMaps();
  await watch.says(/ADDED +last/);
  watch.signal("SIGINT");
  // From 1.34 on, kubectl does not catch the signal but is killed by it.
  const { out, err } = await watch.ended;
  scene.shown.push(out, err);
  const events = out.matchAll(/^([A-Z]+) +([a-z]+) /gm);
  assert.equal(
    Array.from(events, ([, type, name]) => `${type} ${name}`),
    watchedEvents,
  );
}

async function wait(kubectl: Kubectl, scene: Scene): Promise<void> {
  await scene.configMap("job", "running");
  const args = ["wait", "--for=jsonpath={.data.key}=done", "configmap/job", waitFlag];
  const waiting = kubectl.start(args);
  await scene.hold();
  await scene.patch(scene.path("configmaps/job"), { data: { key: "done" } });
  await kubectl.end(waiting, args);
}

/** `kubectl delete` returns when the object is gone. A finalizer keeps the object until the test removes it. */
async function deleteAndWait(kubectl: Kubectl, scene: Scene): Promise<void> {
  const path = scene.path("configmaps/kept");
  await scene.create("configmaps", "ConfigMap", "kept", {
    metadata: { name: "kept", finalizers: ["watchkeeper.dev/test"] },
  });
  const args = ["delete", "configmap", "kept", waitFlag];
  const deleting = kubectl.start(args);
  await deleting.says(/deleted/);
  await scene.hold();
  await scene.patch(path, { metadata: { finalizers: null } });
  await kubectl.end(deleting, args);
  assert.is(await scene.object(path), undefined);
}

const deployments = (scene: Scene): string => `/apis/apps/v1/namespaces/${scene.namespace}/deployments`;

type Pods = { readonly items: readonly { readonly metadata: { readonly name: string } }[] };

/**
 * A Deployment whose pods are on a node without a kubelet, so that they are ready only after `letRun` has set their
 * status.
 */
async function rolloutStatus(kubectl: Kubectl, scene: Scene): Promise<void> {
  const selector = { matchLabels: { app: "web" } };
  const pod = { nodeName: "nowhere", containers: [{ name: "main", image: "none" }] };
  const template = { metadata: { labels: selector.matchLabels }, spec: pod };
  const spec = { replicas: 1, selector, template };
  const body = { apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "web" }, spec };
  await scene.order({ method: "POST", path: deployments(scene), body });
  await untilPods(scene);
  const args = ["rollout", "status", "deployment/web", waitFlag];
  const status = kubectl.start(args);
  await status.says(/0 of 1 updated replicas are available/);
  await scene.hold();
  await letRun(scene);
  await kubectl.end(status, args);
}

/** Resolves when the Deployment's controller has created its pod and has counted the pod in the Deployment's status. */
export async function untilPods(scene: Scene): Promise<void> {
  type Deployments = {
    readonly items: readonly { readonly status: { readonly unavailableReplicas?: number } }[];
  };
  await scene.until("the pod of a Deployment", async () => {
    const list = await scene.object<Deployments>(deployments(scene));
    return list?.items[0]?.status.unavailableReplicas === 1;
  });
}

/** Sets the status of each pod in the namespace to what a kubelet reports when its containers run. */
export async function letRun(scene: Scene): Promise<void> {
  const conditions = ["Ready", "ContainersReady"].map((type) => ({ type, status: "True" }));
  for (const { metadata } of (await scene.object<Pods>(scene.path("pods")))?.items ?? []) {
    await scene.patch(scene.path(`pods/${metadata.name}/status`), {
      status: { phase: "Running", conditions },
    });
  }
}

/** `kubectl drain` of a node without a kubelet. A finalizer keeps the node's pod until the test removes it. */
async function drain(kubectl: Kubectl, scene: Scene): Promise<void> {
  const node = { apiVersion: "v1", kind: "Node", metadata: { name: scene.namespace } };
  const nodePath = `/api/v1/nodes/${scene.namespace}`;
  await scene.order({ method: "POST", path: "/api/v1/nodes", body: node });
  const containers = [{ name: "main", image: "none" }];
  await scene.create("pods", "Pod", "stays", {
    metadata: { name: "stays", finalizers: ["watchkeeper.dev/test"] },
    spec: { nodeName: scene.namespace, terminationGracePeriodSeconds: 0, containers },
  });
  const args = ["drain", scene.namespace, "--force", waitFlag];
  const draining = kubectl.start(args);
  type Pod = { readonly metadata: { readonly deletionTimestamp?: string } };
  const path = scene.path("pods/stays");
  await draining.says(/evicting pod/);
  await scene.until("the eviction", async () => {
    return (await scene.object<Pod>(path))?.metadata.deletionTimestamp !== undefined;
  });
  await scene.hold();
  await scene.patch(path, { metadata: { finalizers: null } });
  await kubectl.end(draining, args);
  assert.is(await scene.object(path), undefined);
  type Node = { readonly spec: { readonly unschedulable?: boolean } };
  assert.is((await scene.object<Node>(nodePath))?.spec.unschedulable, true);
  await kubectl.run(["uncordon", scene.namespace]);
  await scene.order({ method: "DELETE", path: nodePath });
}

/** GET and a watch through `kubectl proxy`. */
async function proxy(kubectl: Kubectl, scene: Scene): Promise<void> {
  await scene.configMap("first", "one");
  const serving = kubectl.start(["proxy", "--port=0"]);
  const [, address] = /on (127\.0\.0\.1:\d+)/.exec(await serving.says(/Starting to serve on/)) ?? [];
  const url = `http://${address}${scene.path("configmaps")}`;
  const list = async (): Promise<{ readonly metadata: { readonly resourceVersion: string } }> => {
    const reply = await fetch(url);
    const text = await reply.text();
    scene.shown.push(`${reply.status} ${text}`);
    return JSON.parse(text);
  };
  const { resourceVersion } = (await list()).metadata;
  const watch = await fetch(`${url}?watch=1&resourceVersion=${resourceVersion}`);
  await scene.hold();
  await scene.changeConfigMaps();
  let events = "";
  for await (const chunk of watch.body ?? []) {
    events += Buffer.from(chunk).toString();
    if (events.includes('"last"') && events.endsWith("\n")) break;
  }
  scene.shown.push(events);
  assert.equal(eventsOf(events), watchedEvents.slice(1));
  await list();
  serving.signal("SIGINT");
  await serving.ended;
}

const short: Readonly<Record<string, Act>> = {
  "get, describe": read,
  "api-resources, explain, auth": discovery,
  "apply --server-side": serverSide,
  "apply, diff, patch, replace, delete": write,
  "apply -k": kustomize,
};

const long: Readonly<Record<string, Act>> = {
  "get -w": getWatch,
  wait,
  "delete, which waits": deleteAndWait,
  "rollout status": rolloutStatus,
  drain,
  proxy,
};

/** Returns an operation of this kubectl for each of `acts`. */
export function operations(
  client: string,
  program: Program,
  acts: Readonly<Record<string, Act>>,
  isLong: boolean,
): Operation[] {
  return Object.entries(acts).map(([name, act]) => ({
    client,
    name,
    needs: [program],
    isLong,
    run: (scene) => act(new Kubectl(program, scene), scene),
  }));
}

export function kubectlOperations(client: string, program: Program): Operation[] {
  return [...operations(client, program, short, false), ...operations(client, program, long, true)];
}
