/** The admin page in a headless Chromium: it shows what the API returns, and it connects to no other host. */
import { join } from "node:path";
import axe, { type AxeResults } from "axe-core";
import { type Browser, chromium, type Page } from "playwright-core";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { pictured } from "../support/page-picture.ts";
import { type Canned, serveCanned } from "../support/page-server.ts";
import { testWith } from "./rig/parts.ts";

const test = suite("real/page");
const real = testWith(test, ["chromium"]);
const pictures = process.env["PAGE_PICTURES"];

let browser: Browser;
let canned: Canned;
let page: Page;
let complaints: string[];

test.before(async () => {
  if (!real.canRun) return;
  browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
});

test.after(async () => {
  if (real.canRun) await browser.close();
});

test.before.each(async () => {
  if (!real.canRun) return;
  canned = await serveCanned();
  complaints = [];
  page = await browser.newPage({ viewport: { width: 1280, height: 900 }, colorScheme: "light" });
  page.on("console", (message) => {
    // Another process on this machine has created a network interface: Chromium retries, and so does the page.
    if (/ERR_NETWORK_CHANGED/.test(message.text())) return;
    if (message.type() === "error" || message.type() === "warning") complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => {
    if (!request.url().startsWith(canned.url)) complaints.push(`asked ${request.url()}`);
  });
  await page.goto(canned.url);
  await page.getByText("1 of 2 backends dead").waitFor();
});

test.after.each(async () => {
  if (!real.canRun) return;
  await page.close();
  await canned.stop();
});

real("it says first what is wrong, and opens to what proves it", async () => {
  const incident = page.locator("#incident-42");
  assert.match(await incident.locator("summary").innerText(), /backend-blackholed[^]*131 watches moved/);
  assert.not.ok(await incident.getByText("PING unanswered for 612 ms").isVisible());
  await page.keyboard.press("i");
  await incident.getByText("PING unanswered for 612 ms").waitFor();
  assert.match(await incident.locator(".evidence tbody").innerText(), /ping\s+612 ms\s+500 ms/);
});

real("every backend has its state in a word, a sign and a reason", async () => {
  const row = page.locator("table.backends tbody tr", { hasText: "cp-2" });
  assert.match(await row.innerText(), /✗ dead/);
  await page.getByRole("button", { name: "Why cp-2 is dead" }).click();
  await page.getByText("ready → ? suspect").waitFor();
});

real("a backend is let go by a button that asks once more, and taken back by another", async () => {
  await page.getByRole("button", { name: "drain cp-1" }).click();
  assert.equal(canned.posted, [], "one click does nothing");
  await page.getByRole("button", { name: "no", exact: true }).click();
  await page.getByRole("button", { name: "drain cp-1" }).click();
  await page.getByRole("button", { name: "drain cp-1" }).click();
  await page.getByText("cp-1 is let go").waitFor();
  assert.equal(canned.posted, ["backends/cp-1/drain by the admin page at 127.0.0.1"]);
  await page.getByRole("button", { name: "undrain cp-1" }).click();
  await page.getByRole("button", { name: "undrain cp-1" }).click();
  await page.getByRole("button", { name: "drain cp-1", exact: true }).waitFor();
  assert.match(canned.posted.at(-1) ?? "", /^backends\/cp-1\/undrain/);
});

real("what was not done says why beside its button", async () => {
  await page.getByRole("button", { name: "drain cp-2" }).click();
  await page.getByRole("button", { name: "drain cp-2" }).click();
  await page.getByText("no other backend is ready").waitFor();
  complaints = complaints.filter((complaint) => !/409/.test(complaint));
});

real("a watch that is silent and well looks calm, a hung one does not", async () => {
  const idle = page.getByRole("row", { name: /argocd/ }).first();
  assert.is(await idle.locator(".bad").count(), 0);
  assert.match(await page.locator("#watches-title").innerText(), /50 k[^]*hung 1/);
  assert.is(
    await page
      .getByRole("row", { name: /prometheus/ })
      .locator(".bad")
      .count(),
    1,
  );
});

real("a ghost is called one, with the caller that renews its lease", async () => {
  const lease = page.getByRole("row", { name: /nginx-leader/ });
  assert.match(await lease.innerText(), /GHOST[^]*10\.9\.3\.7/);
});

real("sorting, paging and filtering are asked of the API, since only it has all the rows", async () => {
  const watches = page.getByRole("region", { name: "watches" });
  await watches.getByRole("button", { name: "events" }).click();
  await canned.asked("/api/v1/watches", { sort: "-events", offset: "0" });
  await page.getByRole("button", { name: "Next rows of watches" }).click();
  await canned.asked("/api/v1/watches", { sort: "-events", offset: "20" });
  await page.keyboard.press("/");
  await page.keyboard.type("argocd");
  await canned.asked("/api/v1/watches", { q: "argocd", offset: "0" });
  await canned.asked("/api/v1/clients", { q: "argocd" });
  await page.keyboard.press("Escape");
  await canned.asked("/api/v1/watches", { q: "", offset: "0" });
});

real("markup in a client's name stays text", async () => {
  await page.getByText("<img src=x onerror=alert(1)>").first().waitFor();
  assert.is(await page.locator("td img").count(), 0);
});

real(
  "when the API does not answer, the page says so, keeps what it last showed, and recovers by itself",
  async () => {
    canned.isSilent = true;
    await page.getByText("No answer").waitFor();
    assert.ok(await page.locator("table.backends").getByText("cp-2").first().isVisible());
    canned.isSilent = false;
    await page.getByText("1 of 2 backends dead").waitFor();
    complaints = complaints.filter((complaint) => !/503/.test(complaint));
  },
);

real("in both themes nothing is serious to axe, and it fits 1280 pixels", async () => {
  for (const theme of ["light", "dark"]) {
    if ((await page.locator("html").getAttribute("data-theme")) !== theme) await page.keyboard.press("t");
    await page.locator(`html[data-theme=${theme}]`).waitFor();
    await page.evaluate(axe.source);
    const { violations } = await page.evaluate<AxeResults>("axe.run()");
    const found = violations.map(({ id, impact, nodes }) => `${impact} ${id}: ${nodes[0]?.html}`);
    assert.equal(
      found.filter((text) => /^(serious|critical)/.test(text)),
      [],
    );
    assert.ok(
      await page.evaluate("document.documentElement.scrollWidth <= innerWidth"),
      "no sideways scrolling",
    );
  }
});

real("names of service accounts leave every column in sight", async () => {
  await playPicture();
  const cut =
    "[...document.querySelectorAll('.scroll')].filter((one) => one.scrollWidth > one.clientWidth).map((one) => `${one.ariaLabel}: ${one.scrollWidth} of ${one.clientWidth}`)";
  assert.equal(await page.evaluate(cut), []);
});

async function playPicture(): Promise<void> {
  await canned.stop();
  canned = await serveCanned(pictured);
  await page.goto(canned.url);
  await page.getByText("system:node:worker-7").first().waitFor();
}

/** README's, as `PAGE_PICTURES=docs/pictures node test/real/page.test.ts` takes them. */
if (pictures !== undefined)
  real("the pictures in README are taken", async () => {
    await playPicture();
    await page.locator("details.incident summary").click();
    await page.evaluate("document.activeElement.blur()");
    for (const theme of ["light", "dark"]) {
      if ((await page.locator("html").getAttribute("data-theme")) !== theme) await page.keyboard.press("t");
      await page.locator(`html[data-theme=${theme}]`).waitFor();
      await page.screenshot({ path: join(pictures, `admin-page-${theme}.png`) });
    }
  });

test.after.each(() => {
  if (real.canRun) assert.equal(complaints, [], "the console is silent, and no other host is asked");
});

test.run();
