import { suite } from "uvu";
import * as assert from "uvu/assert";
import { parseAllDocuments } from "yaml";
import { Failure } from "../../../../src/base/failure.ts";
import { limits } from "../../../../src/base/limits.ts";
import { addSidecar, type Patched } from "../../../../src/ops/cli/deploy/patch-workload.ts";

const test = suite("ops/cli/deploy/patch-workload");

const addition = { image: "registry.test/watchkeeper:1", port: 7443, metricsPort: 7481 };

function patched(text: string, more: Partial<typeof addition> = {}): Patched {
  const outcome = addSidecar(text, "app.yaml", { ...addition, ...more });
  if (outcome instanceof Failure) throw new Error(outcome.message);
  return outcome;
}

function refusal(text: string): string {
  const outcome = addSidecar(text, "app.yaml", addition);
  return outcome instanceof Failure ? outcome.message : "none";
}

const deployment = `# The shop.
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, labels: {team: "a"}}   # ours
spec:
  replicas: 2

  template:
    spec:
      serviceAccountName: shop
      containers:
      # It sells things.
      - name: shop
        image: 'shop:1'
        env:
        - {name: MODE, value: fast}
      - name: till
        image: till:1
      volumes:
      - name: cache
        emptyDir: {}
`;

type Pod = {
  readonly initContainers: readonly Container[];
  readonly containers: readonly Container[];
  readonly volumes: readonly { readonly name: string }[];
};
type Container = {
  readonly name: string;
  readonly image: string;
  readonly args?: readonly string[];
  readonly restartPolicy?: string;
  readonly env?: readonly { readonly name: string; readonly value: string }[];
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[];
};

function podAt(text: string, ...place: readonly string[]): Pod {
  const [document] = parseAllDocuments(text);
  const node: unknown = place.reduce<unknown>(
    (value, key) => Reflect.get(Object(value), key),
    document?.toJS(),
  );
  return node as Pod;
}

const mounts = ({ volumeMounts = [] }: Container): string[] => volumeMounts.map(({ mountPath }) => mountPath);

test("the sidecar comes first and stays, and every container is sent to it", () => {
  const { initContainers, containers, volumes } = podAt(patched(deployment).text, "spec", "template", "spec");
  const [own] = initContainers;
  assert.equal([own?.name, own?.image, own?.restartPolicy], ["watchkeeper", addition.image, "Always"]);
  for (const container of containers) {
    const env = Object.fromEntries((container.env ?? []).map(({ name, value }) => [name, value]));
    assert.equal([env["KUBERNETES_SERVICE_HOST"], env["KUBERNETES_SERVICE_PORT"]], ["127.0.0.1", "7443"]);
    assert.equal(mounts(container), [
      "/var/run/secrets/kubernetes.io/serviceaccount",
      "/var/run/secrets/watchkeeper",
    ]);
  }
  assert.equal(
    volumes.map(({ name }) => name),
    ["cache", "kube-api-via-watchkeeper", "watchkeeper-state", "kube-api-direct"],
  );
});

test("only the sidecar mounts the key's volume", () => {
  const { initContainers, containers } = podAt(patched(deployment).text, "spec", "template", "spec");
  const having = [...initContainers, ...containers].filter((one) =>
    mounts(one).includes("/var/run/watchkeeper"),
  );
  assert.equal(
    having.map(({ name }) => name),
    ["watchkeeper"],
  );
});

test("comments, order, quotes and the list's own indentation stay", () => {
  const { text } = patched(deployment);
  for (const line of [
    "# The shop.",
    'metadata: {name: shop, labels: {team: "a"}} # ours',
    "      # It sells things.",
    "      - name: shop",
    "        image: 'shop:1'",
    "        - {name: MODE, value: fast}",
  ])
    assert.ok(text.includes(`${line}\n`), line);
  const indented = "kind: Pod\nspec:\n  containers:\n    # one\n    - name: a\n      args: [ x ]\n";
  assert.match(patched(indented).text, "\n  containers:\n    # one\n    - name: a\n      args: [ x ]\n");
});

test("a second run changes nothing, and another image or port changes that alone", () => {
  const once = patched(deployment).text;
  assert.is(patched(once).text, once);
  const { initContainers, containers } = podAt(
    patched(once, { image: "w:2", port: 8000 }).text,
    "spec",
    "template",
    "spec",
  );
  assert.equal([initContainers.length, initContainers[0]?.image], [1, "w:2"]);
  assert.equal(initContainers[0]?.args, ["sidecar", "--port", "8000"]);
  assert.is(containers[1]?.env?.find(({ name }) => name === "KUBERNETES_SERVICE_PORT")?.value, "8000");
});

test("every kind of workload has its pod where it belongs", () => {
  const places: Record<string, readonly string[]> = {
    Pod: ["spec"],
    StatefulSet: ["spec", "template", "spec"],
    DaemonSet: ["spec", "template", "spec"],
    ReplicaSet: ["spec", "template", "spec"],
    Job: ["spec", "template", "spec"],
    CronJob: ["spec", "jobTemplate", "spec", "template", "spec"],
  };
  for (const [kind, place] of Object.entries(places)) {
    const spec = place.reduceRight<object>((inner, key) => ({ [key]: inner }), {
      containers: [{ name: "a" }],
    });
    const text = JSON.stringify({ apiVersion: "v1", kind, metadata: { name: "x" }, ...spec });
    const pod = podAt(patched(text).text, ...place);
    assert.equal([pod.initContainers[0]?.name, pod.volumes.length], ["watchkeeper", 3], kind);
  }
});

test("of several documents the others keep every byte", () => {
  const service = "# odd\n\napiVersion:   v1\nkind: Service     # spaces\nspec:   {ports: [ ]}\n";
  const { text } = patched(`${service}---\n${deployment}---\nkind: ConfigMap\ndata: {a:   b}\n...\n`);
  assert.ok(text.startsWith(`${service}---\n`));
  assert.ok(text.endsWith("---\nkind: ConfigMap\ndata: {a:   b}\n...\n"));
  assert.is(parseAllDocuments(text).length, 3);
});

test("the application's own init containers use it too, except those that come before it", () => {
  const pod = (names: readonly string[]): string =>
    JSON.stringify({
      kind: "Pod",
      spec: { initContainers: names.map((name) => ({ name })), containers: [{ name: "a" }] },
    });
  const first = podAt(patched(pod(["migrate"])).text, "spec").initContainers;
  assert.equal(
    first.map(({ name, env = [] }) => [name, env.length]),
    [
      ["watchkeeper", 0],
      ["migrate", 2],
    ],
  );
  const later = podAt(patched(pod(["early", "watchkeeper", "late"])).text, "spec").initContainers;
  assert.equal(
    later.map(({ env = [] }) => env.length),
    [0, 0, 2],
  );
});

test("what would not work is said, with the workload's name", () => {
  const pod = (spec: object): string => JSON.stringify({ kind: "Pod", metadata: { name: "p" }, spec });
  const a = { name: "a" };
  const account = "/var/run/secrets/kubernetes.io/serviceaccount";
  const rows: [object, RegExp][] = [
    [{ hostNetwork: true, containers: [a] }, /^app\.yaml:1:61: Pod "p": hostNetwork: true/],
    [{ containers: [] }, /has no containers/],
    [
      { containers: [{ ...a, env: [{ name: "KUBERNETES_SERVICE_HOST", value: "x" }] }] },
      /container "a" sets KUBERNETES_SERVICE_HOST itself/,
    ],
    [
      { containers: [{ ...a, volumeMounts: [{ name: "own", mountPath: account }] }] },
      /mounts another volume/,
    ],
    [
      { containers: [{ ...a, ports: [{ containerPort: 7443 }] }] },
      /listens on 7443 as well: choose another --port/,
    ],
    [{ containers: [{ ...a, ports: [{ containerPort: 7481 }] }] }, /choose another --metrics-port/],
  ];
  for (const [spec, pattern] of rows) assert.match(refusal(pod(spec)), pattern);
});

test("other kinds, a List, and what is no YAML are clear errors", () => {
  assert.match(
    refusal("kind: Service\n---\nkind: Rollout\n"),
    /has a pod: found Service, Rollout, supported are Pod, /,
  );
  assert.match(refusal("kind: List\nitems: []\n"), /write a "List" as separate documents/);
  assert.match(refusal("just text\n"), /found no kind/);
  assert.match(refusal("kind: [\n"), /is not YAML/);
  assert.match(refusal(""), /is empty|no kind/);
});

test("an alias is not followed: what it stands for is used elsewhere as well", () => {
  const text = "kind: Pod\nx: &env [{name: A}]\nspec:\n  containers:\n  - name: a\n    env: *env\n";
  assert.match(refusal(text), /the alias "\*env" where the sidecar is added/);
});

test("a value of a wrong kind at any place of a workload is an error with its position, and never an exception", () => {
  const odd = (
    "null|1|text|[]|{}|[null]|[1]|[[]]|{a: 1}|!!binary AAAA|!foo x|&a [*a]|*nowhere|{<<: {name: a}}|" +
    "[{name: null}]|[{name: [x]}]|[{? [x] : y}]|&l [{name: a}]"
  ).split("|");
  const named = ["initContainers", "volumes"].map(
    (key) => `kind: Pod\nspec: {containers: [{name: a}], ${key}: X}`,
  );
  const inner = ["env", "volumeMounts", "ports"].map(
    (key) => `kind: Pod\nspec: {containers: [{name: a, ${key}: X}]}`,
  );
  const places = [
    "X",
    "kind: X",
    "kind: Pod\nmetadata: X\nspec: {containers: [{name: a}]}",
    "kind: Pod\nmetadata: {name: X}\nspec: {containers: [{name: a}]}",
    "kind: Pod\nspec: X",
    "kind: CronJob\nspec: X",
    "kind: Deployment\nspec: {template: X}",
    "kind: Deployment\nspec: {template: {spec: X}}",
    "kind: Pod\nspec: {containers: X}",
    "kind: Pod\nspec: {containers: [{name: X}]}",
    ...named,
    ...inner,
  ];
  for (const text of places.flatMap((place) => odd.map((value) => place.replace("X", value)))) {
    const outcome = addSidecar(text, "app.yaml", addition);
    if (outcome instanceof Failure)
      assert.match(outcome.message, /^app\.yaml(:\d+:\d+: \S|: No document )/, text);
    else assert.match(outcome.text, 'value: "7443"', text);
  }
  assert.is(
    refusal("kind: Pod\nspec:\n  containers: [null]\n"),
    'app.yaml:3:15: Pod "without a name": containers is not a list of maps',
  );
});

test("an item of a list keeps the comment before it when it is replaced, and an empty list gets its items", () => {
  const { text } = patched(
    "kind: Pod\nspec:\n  containers:\n  - name: a\n    env: []\n  volumes:\n  # why\n  - name: watchkeeper-state\n",
  );
  assert.match(text, "    env:\n    - name: KUBERNETES_SERVICE_HOST\n");
  assert.match(text, "  # why\n  - name: watchkeeper-state\n    emptyDir:");
});

test("a manifest that is too large is refused", () => {
  assert.match(
    refusal(`a: ${"x".repeat(limits.manifestBytes)}`),
    /^app\.yaml: The file is larger than \d+ bytes/,
  );
});

test("a workload that asked for no token is pointed out", () => {
  const spec = { automountServiceAccountToken: false, containers: [{ name: "a" }] };
  const { remarks } = patched(JSON.stringify({ kind: "Pod", metadata: { name: "p" }, spec }));
  assert.match(remarks.join(), 'Pod "p" had no token');
});

test.run();
