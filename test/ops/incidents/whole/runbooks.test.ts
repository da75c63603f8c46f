/** The command output in the runbooks must be what the commands print while the problem exists. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { wallClock } from "../../../../src/base/clock.ts";
import { explain } from "../../../../src/ops/cli/client/explain.ts";
import { get } from "../../../../src/ops/cli/client/get.ts";
import { blocks } from "../../../docs/blocks.ts";
import { KeptScreen } from "../../../support/api-server.ts";
import {
  badSecret,
  ghostHolder,
  replayLoop,
  shortLoopback,
  silentApiserver,
} from "../../../support/incident-causes.ts";
import { Stage } from "../../../support/incident-stage.ts";
import { testPki } from "../../../support/pki.ts";

const test = suite("ops/incidents/whole/runbooks");
const day = 86_400_000;
const compared = new Set<string>();

async function said(stage: Stage, command: typeof explain, args: readonly string[]): Promise<string> {
  const screen = new KeptScreen({ WATCHKEEPER_ADMIN: stage.proxy.running.apiAddress });
  await command([...args], screen);
  return screen.out;
}

async function explained(stage: Stage, kind: string): Promise<string> {
  const { incident } = await stage.found(kind, performance.now());
  return said(stage, explain, [String(incident.id)]);
}

/** Returns the lines without numbers, column widths and the folders of files, which differ in each run. */
function lines(text: string): readonly string[] {
  return text
    .split("\n")
    .map((line) =>
      line
        .replaceAll(/"\/[^"]*\/(?=[^/"]+")/g, '"/')
        .replaceAll(/\d{4}-[\d-]+T[\d.:]+Z/g, "0")
        .replaceAll(/[\d.:]*\d(ms|[smhd])?\b/g, "0")
        // Two checks find that the backend is dead. Which of them is printed depends on the machine.
        .replace(/\S+ +(ping|dial) .*\bdead: .*/, "dead")
        // A dash stands for a number that is not measured yet.
        .replaceAll(/(?<= )-(?= )/g, "0")
        .replaceAll(/ +/g, " ")
        .trim(),
    )
    .filter((line) => line !== "");
}

/** Checks that each output line of the page is printed. The page may leave out columns at the right. */
function compare(alert: string, output: string): void {
  const own = blocks.filter(({ page, kind }) => page === `docs/runbooks/${alert}.md` && kind === "text");
  assert.ok(own.length > 0, alert);
  compared.add(`docs/runbooks/${alert}.md`);
  const printed = lines(output);
  for (const line of own.flatMap(({ text }) => lines(text)))
    assert.ok(
      printed.some((one) => one.startsWith(line)),
      `${alert}: ${line}\nis not printed, but\n${printed.join("\n")}`,
    );
}

test("a bad certificate, a replay and a ghost", async () => {
  const stage = await Stage.start({ listenerTls: "reloadInterval: 1s" });
  await badSecret(stage);
  await replayLoop(stage);
  await ghostHolder(stage);
  compare("WatchkeeperCertificateRefused", await explained(stage, "certificate-refused"));
  compare("WatchkeeperWatchReplayLoop", await explained(stage, "watch-replay-loop"));
  await stage.found("lease-ghost-holder", performance.now());
  compare("WatchkeeperLeaseSuspect", await said(stage, get, ["leases", "-o", "wide"]));
  const livez = await fetch(`http://${stage.proxy.running.adminAddress}/livez?verbose`);
  compare("WatchkeeperDown", await livez.text());
  await stage.stop();
});

test("certificates that expire soon", async () => {
  const stage = await Stage.start({
    loopback: await shortLoopback(),
    listenerTls: "reloadInterval: 1s",
  });
  const { authority } = await testPki();
  const notAfter = wallClock.wall() + 6 * day;
  const pair = authority.issue({ name: "watchkeeper", hosts: ["localhost"], notAfter });
  writeFileSync(join(stage.proxy.directory, "tls.key"), pair.key, { mode: 0o600 });
  writeFileSync(join(stage.proxy.directory, "tls.crt"), pair.certificate);
  await stage.found("certificate-expiring", performance.now());
  await stage.found("loopback-certificate-expiring", performance.now());
  const output = await said(stage, get, ["certificates", "-o", "wide"]);
  compare("WatchkeeperCertificateExpiring", output);
  compare("WatchkeeperLoopbackCertificateExpiring", output);
  await stage.stop();
});

test("a silent apiserver, and no other one", async () => {
  const stage = await Stage.start();
  const { culprit } = await silentApiserver(stage);
  await stage.found("backend-frozen", performance.now());
  for (let tries = 0; tries < 400; tries += 1) {
    if ((await said(stage, get, ["backends", culprit])).includes("dead")) break;
    await sleep(50);
  }
  compare("WatchkeeperBackendDown", await explained(stage, "backend-frozen"));
  await stage.stop();
});

test("two silent apiservers", async () => {
  const stage = await Stage.start();
  for (const one of stage.embedded) await one.strike("freeze");
  await stage.found("all-backends-down", performance.now());
  compare("WatchkeeperNoReadyBackends", await said(stage, get, ["backends"]));
  await stage.stop();
});

test("no runbook shows an output that is not compared", () => {
  const pages = blocks.filter(({ page, kind }) => page.startsWith("docs/runbooks/") && kind === "text");
  assert.equal(new Set(pages.map(({ page }) => page)), compared);
});

test.run();
