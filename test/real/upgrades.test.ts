/**
 * A short test of upgrades of watchkeeper itself under load: two static pods behind Debian's keepalived, each replaced
 * once as the kubelet replaces it. `npm run test:upgrades` tests each deployment shape with fifty upgrades.
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { clusterNeeds, figure, testWith } from "./rig/parts.ts";
import { summary } from "./storm/tell.ts";
import { noticed, play } from "./upgrades/play.ts";
import { shapes } from "./upgrades/shapes.ts";

const test = suite("real/upgrades");
const real = testWith(test, [...clusterNeeds, "informer", "keepalived", "curl"]);

real("each of two static pods is replaced, and no client and no VIP notices", async () => {
  const shape = shapes.find(({ name }) => name === "two static pods behind keepalived");
  assert.ok(shape !== undefined);
  const played = await play(shape, { most: 2, seconds: 120 });
  for (const line of summary(played.counts.storm).split("\n")) figure(line);
  figure(`${played.counts.connections} new connections, the VIP moved ${played.moves} times`);
  assert.ok(played.counts.connections > 100);
  assert.equal(noticed(played), []);
});

test.run();
