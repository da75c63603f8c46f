/**
 * A rolling upgrade of three apiservers from 1.35 to 1.36 under load; `npm run test:versions` runs all upgrades.
 * `prepare.sh` builds the older kube-apiserver only if it is named. Without it, the suite is skipped, also in CI.
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { clusterNeeds, figure, lacking, testWith } from "./rig/parts.ts";
import { upgrade } from "./versions/upgrade.ts";

const test = suite("real/upgrade");
const older = lacking("kube-apiserver-1.35");
if (older !== undefined) process.stdout.write(`skip: needs ${older}\n`);
const real = testWith(test, [...clusterNeeds, "informer"]);

const title = "a rolling upgrade from 1.35 to 1.36 breaks nothing that clients see";
if (older !== undefined) test.skip(title);
else
  real(title, async () => {
    const { figures, wrong, posts, renewals, longestRenewalMs, differing } = await upgrade("1.35", "1.36");
    for (const line of figures) figure(line);
    figure(
      `${posts} POSTs; ${renewals} renewals of leases, the longest pause ${longestRenewalMs} ms; ${differing} reads of APIs that one version lacks`,
    );
    assert.equal(wrong, []);
  });

test.run();
