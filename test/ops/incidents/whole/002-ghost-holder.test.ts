/** Incident 002: a deleted pod kept running on a node without monitoring, and held a leader lease for days. */
import { setTimeout as sleep } from "node:timers/promises";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { ledgerLimits } from "../../../../src/ops/ledger/limits.ts";
import { foundMs, leaseOf, Stage } from "../../../support/incident-stage.ts";
import { jwt } from "../../../support/jwt.ts";

const test = suite("ops/incidents/whole/002-ghost-holder");

const leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
const pods = "/api/v1/namespaces/default/pods";
const tokenOf = (pod: string): Record<string, string> => ({
  authorization: `Bearer ${jwt({ sub: "system:serviceaccount:default:nginx", "kubernetes.io": { namespace: "default", pod: { name: pod } } })}`,
  "user-agent": "nginx-controller/v1",
});

test("a deleted pod that goes on renewing is named, with the address where it lives", async () => {
  const stage = await Stage.start();
  const admin = stage.caller({ "user-agent": "kubectl/v1" });
  const ghost = stage.caller(tokenOf("nginx-7d4f-x2k4l"), "127.0.0.9");
  await admin.ask(`POST ${pods}`, { metadata: { name: "nginx-7d4f-x2k4l" } });
  await ghost.ask(`POST ${leases}`, leaseOf("leader", "nginx-7d4f-x2k4l_0c4e"));
  assert.is(await ghost.ask(`PUT ${leases}/leader`, leaseOf("leader", "nginx-7d4f-x2k4l_0c4e")), 200);
  await admin.ask(`DELETE ${pods}/nginx-7d4f-x2k4l?gracePeriodSeconds=0`);
  assert.equal(await stage.incidents(), []);
  await sleep(ledgerLimits.podGoneMs + 100);
  const since = performance.now();
  await ghost.ask(`PUT ${leases}/leader`, leaseOf("leader", "nginx-7d4f-x2k4l_0c4e"));
  const { incident, ms } = await stage.found("lease-ghost-holder", since);
  console.log(`figure: a ghost is an incident ${Math.round(ms)} ms after its renewal`);
  assert.ok(ms <= foundMs, `${ms} ms`);
  assert.is(incident.subject, "leases default/leader");
  assert.match(
    incident.evidence[0]?.text ?? "",
    /Pod default\/nginx-7d4f-x2k4l was deleted .* still renews from 127\.0\.0\.9/,
  );
  assert.match(await stage.metrics(), 'verdict="ghost"');
  assert.match(stage.logged("lease-ghost-holder"), "still renews from 127.0.0.9");
  assert.match(await stage.explained(incident), /deleted-pod[^]*still renews from 127\.0\.0\.9/);
  const lock = { namespace: "default", name: "leader" };
  assert.is(await stage.wrongAlerts({ alertname: "WatchkeeperLeaseSuspect", ...lock }), undefined);
  await stage.stop();
});

test("two that renew one lock under one name are both named", async () => {
  const stage = await Stage.start();
  const one = stage.caller({ "user-agent": "manager/v1" }, "127.0.0.2");
  const other = stage.caller({ "user-agent": "manager/v1" }, "127.0.0.3");
  await one.ask(`POST ${leases}`, leaseOf("leader", "manager-0"));
  await other.ask(`PUT ${leases}/leader`, leaseOf("leader", "manager-0"));
  const since = performance.now();
  await one.ask(`PUT ${leases}/leader`, leaseOf("leader", "manager-0"));
  const { incident, ms } = await stage.found("lease-contested", since);
  assert.ok(ms <= foundMs, `${ms} ms`);
  assert.match(incident.summary, /127\.0\.0\.2.* and .*127\.0\.0\.3/);
  assert.match(await stage.explained(incident), /lease-contested[^]*127\.0\.0\.3/);
  const lock = { namespace: "default", name: "leader" };
  assert.is(await stage.wrongAlerts({ alertname: "WatchkeeperLeaseSuspect", ...lock }), undefined);
  await stage.stop();
});

test.run();
