/**
 * Clients that are libraries. Each has one program, `PROGRAM KUBECONFIG NAMESPACE crud|watch|exec|logs`, with these
 * operations:
 *
 * - crud: creates, reads, replaces, patches, lists and deletes the ConfigMap "a", and prints one line for each result
 * - watch: lists ConfigMaps and prints "listed"; then prints one line for each event, such as "ADDED first", until
 *   "last" is added
 * - exec: starts a shell in the pod "shell"; the shell's input, output and exit code are those of the program
 * - logs: follows the log of the pod "shell"
 * - websocket-watch: same as watch, over a websocket; only for fabric8, which uses websockets by default
 *
 * If a watch ends before the program has ended it, the program prints "watch ended" and exits with 1. It never reopens
 * a watch.
 */
import { fileURLToPath } from "node:url";
import * as assert from "uvu/assert";
import { type Built, inJava, inRust } from "../rig/built.ts";
import type { Call } from "../rig/call.ts";
import { type Need, pathOf, pythonPath } from "../rig/parts.ts";
import { type Operation, type Scene, watchedEvents } from "./operation.ts";

type Library = {
  readonly client: string;
  readonly needs: readonly Need[];
  readonly prepare?: Built["prepare"];
  readonly command: Built["command"];
};

const script = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

function javaProgram(name: "fabric8" | "official"): Built {
  return inJava({ name: `java-${name}-program`, sources: script(`java/${name}`) }, "Program");
}

const fabric8: Library = { client: "fabric8", needs: [], ...javaProgram("fabric8") };

const libraries: readonly Library[] = [
  {
    client: "Python",
    needs: ["python"],
    command: () => [pythonPath(), script("programs/program.py")],
  },
  {
    client: "kube-rs",
    needs: [],
    ...inRust({ name: "rust-program", sources: script("rust") }, "kube-rs-program"),
  },
  fabric8,
  { client: "Java", needs: [], ...javaProgram("official") },
  // Last in the list, because its watches end after 30 s without an event, also directly.
  {
    client: "@kubernetes/client-node",
    needs: [],
    command: () => [process.execPath, script("programs/program.ts")],
  },
];

function start(library: Library, scene: Scene, act: string): Call {
  const [command, ...args] = library.command();
  return scene.start(command, [...args, scene.kubeconfigFile, scene.namespace, act]);
}

async function crud(library: Library, scene: Scene): Promise<void> {
  const running = start(library, scene, "crud");
  const { out } = await scene.end(running, ["crud"]);
  assert.equal(out.trim().split("\n"), [
    "created one",
    "read one",
    "replaced two",
    "patched three",
    "listed a",
    "deleted",
    "not found",
  ]);
  assert.is(await scene.object(scene.path("configmaps/a")), undefined);
}

async function watch(library: Library, scene: Scene, act = "watch"): Promise<void> {
  const running = start(library, scene, act);
  await running.says(/listed/);
  await scene.configMap("first", "one");
  await running.says(/ADDED first/);
  await scene.hold();
  await scene.changeConfigMaps();
  const { out } = await scene.end(running, [act]);
  assert.equal(out.trim().split("\n"), ["listed", ...watchedEvents]);
}

async function exec(library: Library, scene: Scene): Promise<void> {
  await scene.pod("shell");
  const running = start(library, scene, "exec");
  running.write("echo answer $((11 * 11))\n");
  await running.says(/answer 121/);
  await scene.hold();
  running.write("echo answer $((12 * 12)); echo err >&2; exit 7\n");
  // Only the standard output is compared: a library may warn on stderr that the machine is slow.
  const { out, err } = await scene.end(running, ["exec"], { exit: 7, shows: (said) => said.out });
  assert.is(out, "answer 121\nanswer 144\n");
  assert.match(err, /^err$/m);
}

async function logs(library: Library, scene: Scene): Promise<void> {
  await scene.pod("shell");
  const running = start(library, scene, "logs");
  await running.says(new RegExp(scene.log("first")));
  await scene.hold();
  await running.says(new RegExp(scene.log("second")));
  running.signal("SIGKILL");
  scene.shown.push(scene.ownLines((await running.ended).out));
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
  readonly objects: Readonly<Record<string, string>>;
};

/** An informer of client-go, which must list exactly once. */
async function informer(scene: Scene, content: string): Promise<void> {
  await scene.configMap("old", "one");
  const args = [
    `-kubeconfig=${scene.kubeconfigFile}`,
    `-namespace=${scene.namespace}`,
    `-content=${content}`,
    "-for=5m",
  ];
  const running = scene.start(pathOf("informer"), args);
  await running.says(/"kind":"synced"/);
  await scene.hold();
  for (let number = 0; number < 20; number += 1) {
    await scene.configMap(`new-${number}`, "two");
    await scene.patch(scene.path(`configmaps/new-${number}`), { data: { key: "three" } });
  }
  await scene.order({ method: "DELETE", path: scene.path("configmaps/old") });
  await running.says(/"kind":"deleted","name":"old"/);
  running.signal("SIGTERM");
  const { out, err } = await running.ended;
  const summary = JSON.parse(out.trimEnd().split("\n").at(-1) ?? "") as Summary;
  const { added, updated, deleted, lists, streamed, fails, backwards, contentType } = summary;
  const seen = { added, updated, deleted, listed: lists + streamed, fails, backwards };
  scene.shown.push(JSON.stringify({ ...seen, contentType }));
  assert.equal(seen, { added: 21, updated: 20, deleted: 1, listed: 1, fails: 0, backwards: 0 }, err);
  type List = {
    readonly items: readonly {
      readonly metadata: { readonly name: string; readonly resourceVersion: string };
    }[];
  };
  const list = await scene.object<List>(scene.path("configmaps"));
  const objects = list?.items.map(({ metadata }) => [metadata.name, metadata.resourceVersion]) ?? [];
  assert.equal(summary.objects, Object.fromEntries(objects));
}

const acts = {
  "create, read, replace, patch, list, delete": { isLong: false, act: crud },
  watch: { isLong: true, act: watch },
  exec: { isLong: true, act: exec },
  "logs, followed": { isLong: true, act: logs },
} as const;

export const libraryOperations: readonly Operation[] = [
  ...["json", "protobuf"].map(
    (content): Operation => ({
      client: "client-go",
      name: `informer, ${content}`,
      needs: ["informer"],
      isLong: true,
      run: (scene) => informer(scene, content),
    }),
  ),
  {
    ...operationOf(fabric8, "watch over a websocket", true, (scene) =>
      watch(fabric8, scene, "websocket-watch"),
    ),
    tunnel: "configmaps",
  },
  ...libraries.flatMap((library) =>
    Object.entries(acts).map(([name, { isLong, act }]) =>
      operationOf(library, name, isLong, (scene) => act(library, scene)),
    ),
  ),
];

function operationOf(
  { client, needs, prepare }: Library,
  name: string,
  isLong: boolean,
  run: Operation["run"],
): Operation {
  return { client, name, needs, isLong, run, ...(prepare === undefined ? {} : { prepare }) };
}
