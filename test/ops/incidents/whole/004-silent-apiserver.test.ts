/**
 * The incident that started the project: an apiserver stops responding, and watches hang on it for days. The simulated
 * fault leaves the kernel working, which still accepts connections, so the proxy reports the backend as frozen. Dropped
 * packets are tested in test/real.
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { FaultKind } from "../../../../demo/apiserver/embedded.ts";
import { foundMs, Stage } from "../../../support/incident-stage.ts";

const test = suite("ops/incidents/whole/004-silent-apiserver");

const watchCount = 8;

async function strike(fault: FaultKind, kind: string): Promise<void> {
  const stage = await Stage.start();
  const callers = Array.from({ length: watchCount }, () => stage.caller({ "user-agent": "kubelet/v1" }));
  const watches = await Promise.all(
    callers.map((one) => one.watch("/api/v1/configmaps?watch=1&resourceVersion=1")),
  );
  const [victim] = stage.embedded.toSorted((a, b) => b.watchCount - a.watchCount);
  const since = performance.now();
  await victim?.strike(fault);
  const { incident, ms } = await stage.found(kind, since);
  console.log(`figure: ${fault} is an incident (${kind}) after ${Math.round(ms)} ms`);
  // The silence limit grows with the round-trip time, and therefore with the load of this machine.
  assert.ok(ms <= 3 * foundMs, `${ms} ms`);
  assert.is(incident.backend, victim?.name);
  assert.ok(incident.evidence.length > 0);
  const alertname = "WatchkeeperBackendDown";
  assert.match(await stage.explained(incident), new RegExp(`${kind} {2}${victim?.name}\n[^]*${alertname}`));
  assert.match(stage.logged(kind), `"subject":"${victim?.name}"`);
  assert.is(await stage.wrongAlerts({ alertname, backend: victim?.name ?? "" }), undefined);
  await victim?.heal(fault);
  await stage.ended(kind);
  for (const watch of watches) await watch.end();
  await stage.stop();
}

test("frozen (SIGSTOP): its kernel acknowledges, its process does not", () =>
  strike("freeze", "backend-frozen"));

test("in a hole that takes sockets and says nothing", () => strike("hole", "backend-frozen"));

test("killed: its port refuses", () => strike("restart", "backend-dead"));

test.run();
