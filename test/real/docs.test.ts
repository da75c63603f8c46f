/**
 * Runs the commands in the docs that need a cluster (test/docs/places.ts) unchanged on a real apiserver. Checks the
 * PromQL expressions in the docs with promtool.
 */
import { copyFileSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { blocks, isManifest, type PageCommand, pageCommands } from "../docs/blocks.ts";
import { placeOf } from "../docs/places.ts";
import { Shell } from "../docs/shell.ts";
import { isMissing, wrongRules } from "../support/promtool.ts";
import { order } from "./rig/ask.ts";
import { call } from "./rig/call.ts";
import { type Cluster, startCluster } from "./rig/cluster.ts";
import { clusterNeeds, pathOf, testWith } from "./rig/parts.ts";

const test = suite("real/docs");
const real = testWith(test, [...clusterNeeds, "kubectl", "helm"]);

let cluster: Cluster;

test.before(async () => {
  if (!real.canRun) return;
  cluster = await startCluster({ apiservers: 1 });
  // A page of the docs requests a token of this service account.
  const path = "/api/v1/namespaces/default/serviceaccounts";
  await order(cluster.admin, { method: "POST", path, body: { metadata: { name: "ops" } } });
  // The workloads that the commands of docs/sidecar.md need.
  const kubectl = ["--kubeconfig", cluster.kubeconfig(cluster.admin.url), "create"];
  await call(pathOf("kubectl"), [...kubectl, "namespace", "shop"]);
  await call(pathOf("kubectl"), [...kubectl, "--namespace", "shop", "deployment", "app", "--image=app"]);
});
test.after(async () => {
  if (real.canRun) await cluster.stop();
});

/** Commands that a page's reader has run before, further up on the page. */
const prelude = /^watchkeeper pki /;

function chapters(): ReadonlyMap<string, readonly PageCommand[]> {
  const own = [...Map.groupBy(pageCommands, ({ page }) => page)]
    .map(([page, all]): [string, PageCommand[]] => [
      page,
      all.filter((command) => placeOf(command).run === "cluster" || prelude.test(command.text)),
    ])
    .filter(([, all]) => all.some((command) => placeOf(command).run === "cluster"));
  // All pages share one cluster, so the page that creates the namespace comes before the pages that need it.
  const begins = (page: string): number => (page === "docs/quickstart.md" ? 0 : 1);
  return new Map(own.toSorted(([a], [b]) => begins(a) - begins(b)));
}

for (const [page, commands] of chapters()) {
  real(`${page}: ${commands.length} commands are taken by a real apiserver`, async () => {
    const { apiservers, pki } = cluster;
    const server = apiservers[0]?.address ?? "";
    const shell = new Shell(
      [
        [/https:\/\/ADDRESS/g, `https://${server}:6443`],
        [/\bADDRESS\b/g, server],
      ],
      { KUBECONFIG: cluster.kubeconfig(cluster.admin.url) },
    );
    // The reader's own programs, and the files that a page assumes the reader to have.
    for (const name of ["kubectl", "helm"] as const)
      symlinkSync(pathOf(name), join(shell.folder, "own", name));
    const names = ["DNS:watchkeeper.example.test"];
    const { certFile, keyFile } = pki.issue({ name: "tls", subject: "/CN=watchkeeper", names });
    copyFileSync(certFile, join(shell.folder, "tls.crt"));
    copyFileSync(keyFile, join(shell.folder, "tls.key"));
    for (const name of ["app.yaml", "deployment.yaml"])
      copyFileSync("deploy/sidecar-example/app.yaml", join(shell.folder, name));
    try {
      for (const command of commands) await taken(shell, command);
    } finally {
      shell.remove();
    }
  });
}

async function taken(shell: Shell, command: PageCommand): Promise<void> {
  const place = placeOf(command);
  const codes: readonly (number | string)[] = (place.run === "cluster" ? place.codes : undefined) ?? [0];
  // The chart installs the same objects as the manifests, so the objects that were applied before are deleted, except
  // the namespace.
  if (command.text.startsWith("helm install")) {
    const own = "deployment,service,configmap,serviceaccount,poddisruptionbudget,networkpolicy";
    await shell.run(`kubectl -n watchkeeper delete ${own} --all --wait=false`);
    await shell.run("kubectl -n default delete role,rolebinding watchkeeper");
  }
  // No kubelet runs the chart's Job before the installation.
  const more = command.text.startsWith("helm install") ? " --no-hooks" : "";
  const { code, text } = await shell.run(command.text + more);
  // Another page may have created the object.
  const isThere = / create /.test(command.text) && text.includes("already exists");
  assert.ok(
    isThere || codes.includes(code),
    `${command.page}:${command.line} ${command.text}: ${code}, ${text}`,
  );
}

real("every object of Kubernetes on a page is taken by a real apiserver", async () => {
  const shown = blocks.filter((block) => isManifest(block));
  assert.ok(shown.length > 0);
  const kubeconfig = cluster.kubeconfig(cluster.admin.url);
  const apply = ["apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-"];
  for (const { page, line, text } of shown) {
    const said = await call(pathOf("kubectl"), ["--kubeconfig", kubeconfig, ...apply], { input: text });
    assert.is(said.code, 0, `${page}:${line} ${said.err}`);
  }
});

test("every expression on a page is one that Prometheus reads", async () => {
  if (isMissing()) return;
  const folder = mkdtempSync(join(tmpdir(), "watchkeeper-promql-"));
  const shown = blocks.filter(({ kind }) => kind === "promql");
  const rules = shown.map(({ text }, at) => ({ record: `shown:${at}`, expr: text.trim() }));
  const file = join(folder, "rules.yaml");
  writeFileSync(file, JSON.stringify({ groups: [{ name: "shown", rules }] }));
  const wrong = await wrongRules(file);
  rmSync(folder, { recursive: true });
  assert.is(wrong, undefined);
});

test.run();
