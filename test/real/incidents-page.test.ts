/**
 * The five incidents as an operator sees them: on the admin page in Chromium, with the cause and the evidence, and in
 * the log, the metrics and the CLI's output. alerts.test.ts tests the alerts in a real Prometheus.
 */
import { join } from "node:path";
import { type Browser, chromium, type Page } from "playwright-core";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import {
  badSecret,
  type Cause,
  ghostHolder,
  loopbackCertificate,
  replayLoop,
  shortLoopback,
  silentApiserver,
} from "../support/incident-causes.ts";
import { foundMs, Stage } from "../support/incident-stage.ts";
import { figure, testWith } from "./rig/parts.ts";

const test = suite("real/incidents-page");
const real = testWith(test, ["chromium"]);
const pictures = process.env["PAGE_PICTURES"];

let browser: Browser;

test.before(async () => {
  if (!real.canRun) return;
  browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
});

test.after(async () => {
  if (real.canRun) await browser.close();
});

/** Opens the admin page of this proxy. `complaints` collects the errors and warnings of its console. */
async function open(stage: Stage): Promise<{ readonly page: Page; readonly complaints: readonly string[] }> {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, colorScheme: "dark" });
  const complaints: string[] = [];
  page.on("console", (message) => {
    // Another process on this machine has created a network interface. Chromium and the page both retry.
    if (/ERR_NETWORK_CHANGED/.test(message.text())) return;
    if (message.type() === "error" || message.type() === "warning") complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  await page.goto(`http://${stage.proxy.running.apiAddress}/`);
  await page.locator(".lane").nth(1).waitFor();
  return { page, complaints };
}

/** Causes an incident, and checks the page, the evidence, and every other place that reports the incident. */
async function shown(stage: Stage, cause: (stage: Stage) => Cause | Promise<Cause>): Promise<void> {
  const { page, complaints } = await open(stage);
  try {
    await follow(stage, page, cause);
  } finally {
    await page.close();
    await stage.stop();
  }
  assert.equal(complaints, []);
}

async function follow(
  stage: Stage,
  page: Page,
  cause: (stage: Stage) => Cause | Promise<Cause>,
): Promise<void> {
  const { kind, culprit, evidence, since, heal } = await cause(stage);
  const row = page.locator("details.incident", { hasText: kind });
  await row.waitFor({ timeout: 4 * foundMs });
  const ms = Math.round(performance.now() - since);
  figure(`${kind} is on the page after ${ms} ms`);
  // The page polls every two seconds. The bound is generous, because a busy machine delays both the detection and the
  // page.
  assert.ok(ms <= 3 * foundMs, `${ms} ms`);
  await row.locator("summary").click();
  assert.match(await row.innerText(), culprit);
  assert.match(await row.locator(".evidence tbody").innerText(), evidence);
  if (pictures !== undefined) await page.screenshot({ path: join(pictures, `incident-${kind}.png`) });
  const { incident } = await stage.found(kind, since);
  assert.match(stage.logged(kind), culprit, "the log");
  assert.match(
    await stage.metrics(),
    new RegExp(`^watchkeeper_incident_active\\{kind="${kind}".*\\} 1$`, "m"),
  );
  assert.match(await stage.explained(incident), culprit, "explain");
  await heal?.();
  if (heal !== undefined) await row.waitFor({ state: "detached", timeout: 8 * foundMs });
}

real("000: a bad secret, by its listener and file", async () => {
  await shown(await Stage.start({ listenerTls: "reloadInterval: 1s" }), badSecret);
});

real("001: a client that goes round in circles, by its name", async () => {
  await shown(await Stage.start(), replayLoop);
});

real("002: a ghost that holds a lease, by the address where it lives", async () => {
  await shown(await Stage.start(), ghostHolder);
});

real("003: an apiserver's own certificate that ends soon, by its backend and date", async () => {
  await shown(await Stage.start({ loopback: await shortLoopback() }), loopbackCertificate);
});

real("004: an apiserver that falls silent, by its name", async () => {
  await shown(await Stage.start(), silentApiserver);
});

test.run();
