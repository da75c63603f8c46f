/**
 * The incident stories in front of real kube-apiservers, as `npm run incident` runs them where kube-apiservers are
 * built.
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import * as badSecret from "../../demo/incidents/bad-secret.ts";
import * as ghostHolder from "../../demo/incidents/ghost-holder.ts";
import * as replayLoop from "../../demo/incidents/replay-loop.ts";
import * as silentApiserver from "../../demo/incidents/silent-apiserver.ts";
import { storyOf } from "../support/story.ts";
import { realSettings } from "./incidents/real-setting.ts";
import { clusterNeeds, figure, testWith } from "./rig/parts.ts";

const test = suite("real/incidents");
const real = testWith(test, clusterNeeds);

real("one bad secret takes down the naive proxy's hosts, and none of watchkeeper's (seed 000)", async () => {
  const { broken, row } = await storyOf(badSecret, realSettings);
  assert.equal(broken, []);
  assert.not.equal(row("bank.example.test").without, row("bank.example.test").with);
});

real(
  "history is replayed on both sides, and only one names who and by which apiserver (seed 001)",
  async () => {
    const { said, broken, row } = await storyOf(replayLoop, realSettings);
    assert.equal(broken, []);
    assert.match(
      said,
      /version-regression: apiserver-[12] sent DELETED of \/configmaps at version \d+, after \d+/,
    );
    assert.ok(Number(row("replayed history").without) > 5);
    assert.is(row("the loop is told").without.trim(), "never");
  },
);

real("a ghost that holds a lease is told with its address (seed 002)", async () => {
  const { broken, row } = await storyOf(ghostHolder, realSettings);
  assert.equal(broken, []);
  assert.is(row("where it lives").with, "127.0.0.9");
  assert.is(row("its lease is held").without, "not reported");
});

real("watches hang without, where packets are dropped, and go on with it (seed 004)", async () => {
  const { said, broken, row } = await storyOf(silentApiserver, realSettings);
  assert.equal(broken, []);
  assert.match(row("watches that hung").without, /^[1-4] of 4$/);
  // The absolute delays depend on the machine. The ratio between the delay without watchkeeper and the delay with it
  // depends on the machine only little.
  const { without, with: ours } = row("latest event");
  assert.ok(Number.parseFloat(without) > 4 * Number.parseFloat(ours), `${without}, ${ours}`);
  assert.match(said, "backend-blackholed: ");
  figure(`004: latest event ${row("latest event").with}, without ${row("latest event").without}`);
});

test.run();
