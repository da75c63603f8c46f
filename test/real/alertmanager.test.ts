/** The shipped inhibit rules in a real Alertmanager: an outage of a whole cluster causes one notification. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { alerts } from "../support/alert-rules.ts";
import { freePort } from "../support/free-port.ts";
import { programOf } from "../support/promtool.ts";

const test = suite("real/alertmanager");
const program = programOf("prometheus-alertmanager");
if (program === undefined && process.env["CI"] !== undefined)
  throw new Error("Cannot skip in CI: needs prometheus-alertmanager");
if (program === undefined)
  process.stdout.write("skip: needs prometheus-alertmanager: run test/real/prepare.sh\n");
const real = program === undefined ? test.skip : test;

type Labels = Readonly<Record<string, string>>;
type Shown = { readonly labels: Labels; readonly status: { readonly inhibitedBy: readonly string[] } };

let folder = "";
let url = "";
let child: ChildProcess | undefined;

test.before(async () => {
  if (program === undefined) return;
  folder = mkdtempSync(join(tmpdir(), "watchkeeper-alertmanager-"));
  const address = `127.0.0.1:${await freePort()}`;
  url = `http://${address}/api/v2/alerts`;
  child = spawn(
    program,
    [
      "--config.file=deploy/monitoring/alertmanager.yaml",
      `--storage.path=${folder}`,
      `--web.listen-address=${address}`,
      "--cluster.listen-address=",
    ],
    { stdio: "ignore" },
  );
  for (let tries = 0; tries < 300; tries += 1) {
    const answer = await fetch(url).catch(() => undefined);
    await answer?.body?.cancel();
    if (answer?.ok === true) return;
    await sleep(100);
  }
  throw new Error("Alertmanager does not start");
});
test.after(() => {
  child?.kill("SIGKILL");
  if (folder !== "") rmSync(folder, { recursive: true, force: true });
});

/** Returns the alerts of this cluster that Alertmanager would send while all of `firing` are active. */
async function notified(cluster: string, firing: readonly Labels[]): Promise<readonly string[]> {
  const labelled = firing.map((labels) => ({ labels: { severity: severityOf(labels), cluster, ...labels } }));
  const headers = { "content-type": "application/json" };
  const posted = await fetch(url, { method: "POST", headers, body: JSON.stringify(labelled) });
  assert.is(posted.status, 200);
  // Alertmanager passes a new alert to its inhibitor a moment after it has answered the POST.
  await sleep(500);
  const filter = encodeURIComponent(`cluster="${cluster}"`);
  const all = (await (await fetch(`${url}?filter=${filter}`)).json()) as readonly Shown[];
  assert.is(all.length, firing.length);
  return all
    .filter(({ status }) => status.inhibitedBy.length === 0)
    .map(({ labels }) => `${labels["alertname"]} ${labels["backend"] ?? ""}`.trimEnd())
    .toSorted();
}

function severityOf({ alertname }: Labels): string {
  const alert = alerts.find(({ name }) => name === alertname);
  if (alert === undefined) throw new Error(`No alert is called ${alertname}`);
  return alert.severity;
}

const down = ["cp-1", "cp-2", "cp-3"].map((backend) => ({ alertname: "WatchkeeperBackendDown", backend }));
const unhealthy = { alertname: "WatchkeeperInstanceUnhealthy", reason: "no-ready-backend" };

real("of a cluster without an apiserver only the critical alert is sent", async () => {
  const none = { alertname: "WatchkeeperNoReadyBackends" };
  const certificate = { alertname: "WatchkeeperCertificateRefused" };
  assert.equal(await notified("eu", [none, unhealthy, ...down, certificate]), [
    "WatchkeeperCertificateRefused",
    "WatchkeeperNoReadyBackends",
  ]);
});

real("another cluster's outage holds nothing back", async () => {
  assert.equal(await notified("us", down.slice(0, 1)), ["WatchkeeperBackendDown cp-1"]);
});

real("watches that ended are not sent beside the apiserver that is down", async () => {
  const ended = { alertname: "WatchkeeperWatchesEnded", reason: "expired" };
  assert.equal(await notified("asia", [ended, ...down.slice(0, 1)]), ["WatchkeeperBackendDown cp-1"]);
});

real("while no instance is scraped, no warning is sent", async () => {
  const all = [
    { alertname: "WatchkeeperDown" },
    unhealthy,
    { alertname: "WatchkeeperOverload", reason: "overload" },
  ];
  assert.equal(await notified("africa", all), ["WatchkeeperDown"]);
});

test.run();
