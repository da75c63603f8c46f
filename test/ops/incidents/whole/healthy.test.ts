/**
 * On a healthy system there must be no incident: mixed load, with leaders that replace each other. HEALTHY_SECONDS sets
 * a longer duration.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { leaseOf, Stage } from "../../../support/incident-stage.ts";

const test = suite("ops/incidents/whole/healthy");
const seconds = Number(process.env["HEALTHY_SECONDS"] ?? 8);
const leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
const configmaps = "/api/v1/namespaces/default/configmaps";

test(`${seconds} s of reads, writes, watches and elections are no incident`, async () => {
  const stage = await Stage.start();
  const until = performance.now() + 1000 * seconds;
  const isOn = (): boolean => performance.now() < until;
  let asked = 0;
  const controller = async (index: number): Promise<void> => {
    const client = stage.caller({ "user-agent": `controller-${index}/v1` }, `127.0.0.${10 + index}`);
    while (isOn()) {
      await client.ask(`GET ${configmaps}?resourceVersion=0`);
      const watch = await client.watch(`${configmaps}?watch=1&resourceVersion=${stage.store.revision}`);
      for (let times = 0; times < 10 && isOn(); times += 1) {
        await client.ask(`POST ${configmaps}`, { metadata: { name: `c-${index}-${times}` } });
        await client.ask(`GET ${configmaps}/c-${index}-${times}`);
        await client.ask(`DELETE ${configmaps}/c-${index}-${times}`);
        asked += 3;
        await sleep(50);
      }
      await watch.end();
    }
  };
  /** One leader after another; each releases the lease when it leaves. */
  const elections = async (): Promise<void> => {
    const first = stage.caller({ "user-agent": "manager/v1" }, "127.0.0.30");
    await first.ask(`POST ${leases}`, leaseOf("leader", ""));
    for (let turn = 0; isOn(); turn += 1) {
      const leader = stage.caller({ "user-agent": "manager/v1" }, `127.0.0.${31 + (turn % 5)}`);
      for (let times = 0; times < 4; times += 1) {
        await leader.ask(`PUT ${leases}/leader`, leaseOf("leader", `manager-${turn}`));
        await sleep(200);
      }
      await leader.ask(`PUT ${leases}/leader`, leaseOf("leader", ""));
    }
  };
  await Promise.all([...Array.from({ length: 6 }, (_, index) => controller(index)), elections()]);
  console.log(`figure: ${asked} requests in ${seconds} s, 0 incidents`);
  assert.ok(asked > 20);
  assert.equal(await stage.incidents(), []);
  assert.is(await stage.wrongAlerts(), undefined);
  await stage.stop();
});

test.run();
