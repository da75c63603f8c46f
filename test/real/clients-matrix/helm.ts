/**
 * helm commands for a release from its install to its uninstall, and an install that waits for a Deployment (`--wait`).
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as assert from "uvu/assert";
import { pathOf } from "../rig/parts.ts";
import { letRun, untilPods } from "./kubectl.ts";
import { type Operation, type Run, type Scene, waitFlag } from "./operation.ts";

const files = {
  "Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
  "values.yaml": "colour: green\nreplicas: 0\n",
  "templates/configmap.yaml": `apiVersion: v1
kind: ConfigMap
metadata: { name: {{ .Release.Name }}-a }
data: { colour: {{ .Values.colour }} }
`,
  "templates/deployment.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: { name: {{ .Release.Name }} }
spec:
  replicas: {{ .Values.replicas }}
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec: { nodeName: nowhere, containers: [{ name: main, image: none }] }
`,
} as const;

function writeChart(scene: Scene): string {
  const chart = join(scene.folder, "chart");
  mkdirSync(join(chart, "templates"), { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(chart, name), text);
  return chart;
}

function commandLine(scene: Scene, args: readonly string[]): [string, string[]] {
  const access = ["--kubeconfig", scene.kubeconfigFile, "--namespace", scene.namespace];
  return [pathOf("helm"), [...access, ...args]];
}

async function release(scene: Scene): Promise<void> {
  const chart = writeChart(scene);
  const helm = (args: readonly string[], options: Run = {}): Promise<unknown> => {
    return scene.run(...commandLine(scene, args), options);
  };
  type Data = { readonly data: { readonly colour: string } };
  const is = async (colour: string | undefined): Promise<void> => {
    assert.is((await scene.object<Data>(scene.path("configmaps/x-a")))?.data.colour, colour);
  };
  await helm(["install", "x", chart]);
  await is("green");
  await helm(["upgrade", "x", chart, "--set", "colour=blue"]);
  await is("blue");
  await helm(["get", "values", "x"]);
  await helm(["rollback", "x", "1"]);
  await is("green");
  await helm(["history", "x"]);
  await helm(["list"]);
  // The kinds may be in any order.
  await helm(["status", "x", "--show-resources"], {
    shows: ({ out }) => out.split("\n").toSorted().join("\n"),
  });
  await helm(["uninstall", "x"]);
  await is(undefined);
  await helm(["status", "x"], { exit: 1 });
}

async function installAndWait(scene: Scene): Promise<void> {
  const args = ["install", "x", writeChart(scene), "--set", "replicas=1", "--wait", waitFlag];
  const [command, all] = commandLine(scene, args);
  const installing = scene.start(command, all);
  await untilPods(scene);
  await scene.hold();
  await letRun(scene);
  await scene.end(installing, all);
}

export const helmOperations: readonly Operation[] = [
  {
    client: "helm",
    name: "install, upgrade, rollback, uninstall",
    needs: ["helm"],
    isLong: false,
    run: release,
  },
  { client: "helm", name: "install --wait", needs: ["helm"], isLong: true, run: installAndWait },
];
