/**
 * The founding incident: an apiserver that says nothing more, and watches that hang on it for days. In a user-space hole
 * the kernel still takes sockets, so it shows as frozen; packets that are really dropped need test/real.
 */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { FaultKind } from "../../../src/demo/apiserver/embedded.ts";
import { foundMs, Stage } from "../../support/incident-stage.ts";

const test = suite("incidents/whole/004-silent-apiserver");

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
  // How long silence is patience grows with the round trips, and so with whatever else this machine does.
  assert.ok(ms <= 3 * foundMs, `${ms} ms`);
  assert.is(incident.backend, victim?.name);
  assert.ok(incident.evidence.length > 0);
  const alertname = "WatchkeeperBackendDown";
  assert.match(
    await stage.explained(incident),
    new RegExp(`${kind} {2}${victim?.name}\n[^]*${alertname}\\.md`),
  );
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
