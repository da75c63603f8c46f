/**
 * The Helm chart, rendered with sets of values. Each set is either refused with a reason, or gives objects that fit
 * together: labels and selectors, ports, accounts, volumes, and a configuration that watchkeeper takes.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { assertFit } from "./chart/fit.ts";
import { kindsIn, objectsIn } from "./chart/objects.ts";
import { refused } from "./chart/refused.ts";
import { taken } from "./chart/taken.ts";
import { image, monitor, type Values } from "./chart/values.ts";
import { call, type Output } from "./rig/call.ts";
import { pathOf, testWith } from "./rig/parts.ts";

const test = suite("real/chart");
const real = testWith(test, ["helm"]);
const chart = "deploy/helm/watchkeeper";
const folder = mkdtempSync(join(tmpdir(), "watchkeeper-chart-"));
test.after(() => rmSync(folder, { recursive: true, force: true }));

/* eslint-disable-next-line typescript/no-explicit-any */

let count = 0;

async function helm(values: Values, release = "wk", from = chart): Promise<Output> {
  const file = join(folder, `values-${count++}.json`);
  writeFileSync(file, JSON.stringify({ image, ...values }));
  const args = [
    "template",
    release,
    from,
    "--namespace",
    "watchkeeper",
    "--kube-version",
    "1.36.1",
    "-f",
    file,
  ];
  return call(pathOf("helm"), args, { env: { HOME: folder } });
}

/** Runs `run` for each member, two at a time. */
async function inPairs<T>(members: readonly T[], run: (one: T) => Promise<void>): Promise<void> {
  const waiting = [...members];
  await Promise.all(
    [0, 1].map(async () => {
      for (let one = waiting.shift(); one !== undefined; one = waiting.shift()) await run(one);
    }),
  );
}

function within(name: string, check: () => void): void {
  try {
    check();
  } catch (error) {
    throw new Error(`${name}: ${String(error)}`, { cause: error });
  }
}

real(`${taken.length} sets of values give objects that fit together`, async () => {
  await inPairs(taken, async ([name, values, check]) => {
    const { code, out, err } = await helm(values);
    assert.is(code, 0, `${name}: ${err}`);
    within(name, () => {
      const objects = objectsIn(out);
      assertFit(objects);
      check(objects, out);
    });
  });
});

real(`${refused.length} sets of values are refused, each with its reason`, async () => {
  assert.ok(taken.length + refused.length >= 80);
  await inPairs(refused, async ([name, values, reason]) => {
    const { code, out, err } = await helm(values);
    assert.is.not(code, 0, `${name} was rendered`);
    assert.equal([out, reason.test(err)], ["", true], `${name}: ${err}`);
  });
});

real(
  "names of releases: numbers and reserved words are quoted, and one that is too long is refused",
  async () => {
    for (const release of ["true", "null", "e5", "yes"]) {
      const { out, err } = await helm({}, release);
      within(`${release} ${err}`, () => assertFit(objectsIn(out)));
    }
    assert.match((await helm({}, "1e5")).err, `"1e5-watchkeeper" cannot be the name`);
    assert.match((await helm({}, "a".repeat(53))).err, "set fullnameOverride");
    const { out } = await helm({ fullnameOverride: "short" }, "1".repeat(53));
    within("short", () => assertFit(objectsIn(out)));
  },
);

real(
  "the chart of the npm package is whole: it renders with its dashboard and alerts, as the one of the repository",
  async () => {
    const packed = spawnSync("npm", ["pack", "--silent", "--pack-destination", folder], { encoding: "utf8" });
    assert.is(packed.status, 0, packed.stderr);
    assert.is(spawnSync("tar", ["-xzf", join(folder, packed.stdout.trim()), "-C", folder]).status, 0);
    const values = { dashboard: { enabled: true }, prometheusRule: { enabled: true }, ...monitor };
    const own = await helm(values, "wk", join(folder, "package", chart));
    assert.is(own.code, 0, own.err);
    assert.is(own.out, (await helm(values)).out);
  },
);

real(
  "the check's Job refuses a configuration whose keys contradict each other, which the schema cannot see",
  async () => {
    const cluster = (name: string): Values => ({
      name,
      backends: [{ name: "a", url: "https://a.example" }],
      tls: { caFile: "/ca" },
    });
    const { out } = await helm({ config: { clusters: [cluster("a"), cluster("a")] } });
    const objects = objectsIn(out);
    const [job] = kindsIn(objects, "Job");
    const file = join(folder, "check.yaml");
    writeFileSync(
      file,
      kindsIn(objects, "ConfigMap").find((one) => one.metadata.name.endsWith("-check")).data[
        "watchkeeper.yaml"
      ],
    );
    const args = job.spec.template.spec.containers[0].args.slice(0, -1).concat(file);
    const said = await call(process.execPath, ["bin/watchkeeper.js", ...args]);
    assert.is(said.code, 2, said.out + said.err);
    for (const one of objects.filter(({ metadata }) => metadata.name.endsWith("-check")))
      assert.is(one.metadata.annotations["helm.sh/hook"], "pre-install,pre-upgrade");
  },
);

real("`helm lint --strict` finds nothing", async () => {
  const said = await call(
    pathOf("helm"),
    ["lint", "--strict", chart, "--set", `image.repository=${image.repository}`],
    { env: { HOME: folder } },
  );
  assert.is(said.code, 0, said.out + said.err);
});

test.run();
