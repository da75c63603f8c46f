/** The admin page in a headless Chromium: it shows what the API returns, and it connects to no other host. */
import { join } from "node:path";
import axe, { type AxeResults } from "axe-core";
import { type Browser, chromium, type Page } from "playwright-core";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { now } from "../support/page.ts";
import { pictured } from "../support/page-picture.ts";
import { type Canned, replicated, serveCanned } from "../support/page-server.ts";
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
    // Another process on this machine has created a network interface. Chromium and the page both retry.
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
  const lane = page.getByRole("group", { name: "cp-2", exact: true });
  assert.match(await lane.innerText(), /✗ dead[^]*PING unanswered for 2013 ms/);
  await page.getByRole("button", { name: "Why cp-2 is dead" }).click();
  await page.getByText("ready → ? suspect").waitFor();
});

real(
  "the hour before the page was opened is there: charts, states and the incident on one axis",
  async () => {
    const lane = page.getByRole("group", { name: "cp-2", exact: true });
    await lane.getByRole("img", { name: "cp-2, states: ready, suspect, dead" }).waitFor();
    assert.match(await lane.innerText(), /watches\s*0\s*of 262/);
    await page.getByRole("link", { name: "#42 backend-blackholed" }).waitFor();
  },
);

real("the keyboard moves through time, and the address keeps the moment", async () => {
  const lane = page.getByRole("group", { name: "cp-2", exact: true });
  await page.getByRole("slider", { name: "time" }).focus();
  for (let press = 0; press < 24; press += 1) await page.keyboard.press("ArrowLeft");
  await lane.getByText("✓ ready").waitFor();
  assert.match(await lane.innerText(), /watches\s*131\s*of 262/);
  assert.match(page.url(), /#\/\?t=/);
  await page.reload();
  await lane.getByText("✓ ready").waitFor();
  await page.getByRole("button", { name: "now" }).click();
  await lane.getByText("✗ dead").waitFor();
});

real("the mouse shows the values of a moment", async () => {
  await page.getByRole("group", { name: "cp-1", exact: true }).locator(".plot").nth(1).hover();
  await page.getByRole("group", { name: "cp-2", exact: true }).getByText("✓ ready").waitFor();
});

real("the path says where the streams go, in the colours of the states", async () => {
  const picture = page.getByRole("img", { name: /^Open requests. From control plane 68, nodes 192/ });
  assert.match((await picture.getAttribute("aria-label")) ?? "", /cp-1 ready \d+, cp-2 dead \d+/);
});

real("an incident is replayed second by second, and what is found later is dimmed", async () => {
  await page.goto(`${canned.url}#/incidents/42`);
  await page.getByText("Evidence 2 of 2").waitFor();
  const cp2 = page.getByRole("group", { name: "cp-2", exact: true });
  await page.getByRole("slider", { name: "time" }).focus();
  for (let press = 0; press < 3; press += 1) await page.keyboard.press("ArrowLeft");
  await page.getByText("Evidence 0 of 2").waitFor();
  await cp2.getByText("✓ ready").or(cp2.getByText("? suspect")).waitFor();
  await page.getByRole("button", { name: "play" }).click();
  await page.getByText("Evidence 1 of 2").waitFor();
  await page.getByRole("button", { name: "pause" }).click();
});

real("dots travel where watches move, unless the user prefers reduced motion", async () => {
  await page.goto(`${canned.url}#/?t=${new Date(now - 38_000).toISOString()}`);
  await page.getByText("131 watches moved from cp-2 to cp-1").waitFor();
  assert.is(await page.locator(".dot").count(), 7);
  await page.emulateMedia({ reducedMotion: "reduce" });
  await page.reload();
  await page.getByText("131 watches moved from cp-2 to cp-1").waitFor();
  assert.is(await page.locator(".dot").count(), 0);
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
  await open("Watches");
  const idle = page.getByRole("row", { name: /argocd/ }).first();
  assert.is(await idle.locator(".bad").count(), 0);
  // The number of hung watches and the number of all watches come from two requests to the API, so the test waits for
  // both.
  await page.locator("#watches-title", { hasText: /50 k[^]*hung 1/ }).waitFor();
  assert.is(
    await page
      .getByRole("row", { name: /prometheus/ })
      .locator(".bad")
      .count(),
    1,
  );
});

real("a ghost is called one, with the caller that renews its lease", async () => {
  await open("Leases");
  const lease = page.getByRole("row", { name: /nginx-leader/ });
  assert.match(await lease.innerText(), /GHOST[^]*10\.9\.3\.7/);
});

real(
  "sorting, paging, grouping and searching are asked of the API, since only it has all the rows",
  async () => {
    await open("Watches");
    const watches = page.getByRole("region", { name: "watches" });
    await watches.getByRole("button", { name: "events" }).click();
    await canned.asked("/api/v1/watches", { sort: "-events", offset: "0", group: "resource" });
    await page.getByRole("button", { name: "Next rows of watches" }).click();
    await canned.asked("/api/v1/watches", { sort: "-events", offset: "50" });
    await page.getByRole("combobox").selectOption("agent");
    await page.getByRole("button", { name: "argocd 1", exact: true }).click();
    await canned.asked("/api/v1/watches", { group: "agent", agent: "argocd", offset: "0" });
    await page.reload();
    await canned.asked("/api/v1/watches", { group: "agent", agent: "argocd", sort: "-events" });
    await page.getByRole("button", { name: "Remove the filter program argocd" }).click();
    await page.keyboard.press("/");
    await page.keyboard.type("argocd");
    await canned.asked("/api/v1/watches", { q: "argocd", agent: "", offset: "0" });
    await page.keyboard.press("Escape");
    await canned.asked("/api/v1/watches", { q: "", offset: "0" });
    await open("Clients");
    await page.keyboard.press("/");
    await page.keyboard.type("argocd");
    await canned.asked("/api/v1/clients", { q: "argocd" });
  },
);

real("a search from the overview is a search for watches", async () => {
  await page.keyboard.press("/");
  await page.keyboard.type("a");
  await canned.asked("/api/v1/watches", { q: "a" });
});

real("one watch is shown with its versions and its life, and a link opens it again", async () => {
  await open("Watches");
  await page
    .getByRole("row", { name: /argocd/ })
    .getByRole("button", { name: "/pods" })
    .click();
  const panel = page.getByRole("group", { name: "one watch" });
  await panel.getByText("1182700 → 1182733").waitFor();
  await panel.getByText("opened").waitFor();
  await page.reload();
  await panel.getByText("1182700 → 1182733").waitFor();
  await page.getByRole("button", { name: "Close the details" }).click();
  assert.is(await panel.count(), 0);
});

real("markup in a client's name stays text", async () => {
  await open("Clients");
  await page.getByText("<img src=x onerror=alert(1)>").first().waitFor();
  assert.is(await page.locator("td img").count(), 0);
});

real(
  "when the API does not answer, the page says so, keeps what it last showed, and recovers by itself",
  async () => {
    canned.isSilent = true;
    await page.getByText("No answer").waitFor();
    assert.ok(await page.getByRole("heading", { name: "cp-2" }).isVisible());
    canned.isSilent = false;
    await page.getByText("1 of 2 backends dead").waitFor();
    complaints = complaints.filter((complaint) => !/503/.test(complaint));
  },
);

const views = ["#/", "#/incidents/42", "#/watches?watch=a-1", "#/clients", "#/leases", "#/certificates"];

real(
  "axe finds nothing in any view, in both themes, at 1280 and at 400 pixels, and no view scrolls sideways",
  async () => {
    for (const width of [1280, 400])
      for (const colorScheme of ["light", "dark"] as const) {
        await page.setViewportSize({ width, height: 900 });
        await page.evaluate(`localStorage.setItem("theme", "${colorScheme}")`);
        for (const view of views) {
          await page.goto(`${canned.url}${view}`);
          await page.reload();
          await page.locator(`html[data-theme=${colorScheme}] main section`).first().waitFor();
          // On a busy machine several parts of a page may still wait for their data.
          await page.getByText("Not read yet").first().waitFor({ state: "detached" });
          await page.evaluate(axe.source);
          const { violations } = await page.evaluate<AxeResults>("axe.run()");
          const found = violations.map(({ id, impact, nodes }) => `${impact} ${id}: ${nodes[0]?.html}`);
          assert.equal(found, [], `${view} ${colorScheme} ${width}`);
          const scrolls = await page.evaluate("document.documentElement.scrollWidth - innerWidth");
          assert.is(scrolls, 0, `${view} at ${width} pixels`);
        }
      }
  },
);

async function openReplicated(path = ""): Promise<void> {
  await canned.stop();
  canned = await serveCanned(replicated);
  await page.goto(`${canned.url}${path}`);
  await page.getByText("1 of 2 backends dead").waitFor();
}

real("one replica is no choice; of three, each is in the table and can be chosen by keyboard", async () => {
  assert.is(await page.getByRole("combobox", { name: "Replica that the page shows" }).count(), 0);
  await openReplicated();
  const table = page.getByRole("region", { name: "all replicas" });
  assert.match(
    await table.innerText(),
    /wk-1 \(this replica\), shown[^]*wk-2[^]*live[^]*0\.1\.0[^]*1\.0 h|60 m/,
  );
  const choice = page.getByRole("combobox", { name: "Replica that the page shows" });
  await choice.focus();
  const asked = canned.asked("/api/v1/replicas/wk-2/backends", {});
  await page.keyboard.press("ArrowDown");
  await asked;
  await page.getByText("1 of 2 backends dead").waitFor();
  assert.match(page.url(), /\?replica=wk-2#?/);
  assert.is(await page.evaluate("document.activeElement.id"), "replica");
  assert.is(await page.getByRole("button", { name: "drain cp-1" }).count(), 0, "operations stay per replica");
  await page.goBack();
  await page.getByRole("button", { name: "drain cp-1" }).waitFor();
  await table.getByRole("button", { name: "Show wk-3" }).click();
  await page.getByText("wk-3, shown").waitFor();
  await open("Watches");
  assert.match(page.url(), /\?replica=wk-3#\/watches$/);
});

real("a link opens the replica, and when it dies, the page says so and offers the others", async () => {
  await openReplicated("?replica=wk-2#/watches");
  assert.is(await page.locator("#replica").inputValue(), "wk-2");
  canned.lost.add("wk-2");
  const alert = page.getByRole("alert");
  await alert.getByText("Replica wk-2 has not answered for 20 s: connect ECONNREFUSED.").waitFor();
  complaints = complaints.filter((text) => !text.includes("502"));
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate<AxeResults>("axe.run()");
  assert.equal(
    violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`),
    [],
  );
  await alert.getByRole("button", { name: "wk-1 (this replica)" }).click();
  await page.getByText("1 of 2 backends dead").waitFor();
  await page.waitForURL(/\/#\/watches$/);
  assert.is(await alert.innerText(), "");
  complaints = complaints.filter((text) => !text.includes("502"));
});

real(
  "axe finds nothing in the table of replicas and the choice, in both themes, at 1280 and at 400 pixels",
  async () => {
    await openReplicated();
    for (const width of [1280, 400])
      for (const colorScheme of ["light", "dark"] as const) {
        await page.setViewportSize({ width, height: 900 });
        await page.evaluate(`localStorage.setItem("theme", "${colorScheme}")`);
        await page.reload();
        await page.getByRole("region", { name: "all replicas" }).waitFor();
        await page.evaluate(axe.source);
        const { violations } = await page.evaluate<AxeResults>("axe.run()");
        assert.equal(
          violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`),
          [],
          `${colorScheme} ${width}`,
        );
        assert.is(await page.evaluate("document.documentElement.scrollWidth - innerWidth"), 0, `${width}`);
      }
  },
);

real("names of service accounts leave every column in sight", async () => {
  await playPicture();
  for (const tab of ["Watches", "Clients", "Leases"]) {
    await open(tab);
    await page.locator("tbody tr").first().waitFor();
    const cut =
      "[...document.querySelectorAll('.scroll')].filter((one) => one.scrollWidth > one.clientWidth).map((one) => `${one.ariaLabel}: ${one.scrollWidth} of ${one.clientWidth}`)";
    assert.equal(await page.evaluate(cut), []);
  }
});

async function open(tab: string): Promise<void> {
  await page.getByRole("navigation").getByRole("link", { name: tab }).click();
  await page.locator("main section").first().waitFor();
}

async function playPicture(): Promise<void> {
  await canned.stop();
  canned = await serveCanned(pictured);
  await page.goto(canned.url);
  await page.getByText("1 of 2 backends dead").waitFor();
}

/** Takes the pictures of README, for `npm run pictures`. */
if (pictures !== undefined)
  real("the pictures in README are taken", async () => {
    await playPicture();
    await page.getByRole("group", { name: "this process" }).waitFor();
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
