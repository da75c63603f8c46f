/** Incident 002: the process of a deleted pod still runs on an unreachable node, and holds a leader lease. */
import { dateOf, wallClock } from "../../src/base/clock.ts";
import { type Json, mapOf, textOf } from "../objects/json.ts";
import type { DemoClient } from "../story/client.ts";
import { brokenOf, type Outcome, whenReported } from "./outcome.ts";
import type { Contender, Scene } from "./scene.ts";
import type { Wishes } from "./setting.ts";

const leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
const pods = "/api/v1/namespaces/default/pods";
const pod = "nginx-7d4f-x2k4l";
const ghostAt = "127.0.0.9";
const renewMs = 500;

export const wishes: Wishes = {};

export async function play(scene: Scene): Promise<Outcome> {
  const admin = scene.client("watchkeeper", { fields: { "user-agent": "kubectl/v1" } });
  const spec = { containers: [{ name: "nginx", image: "nginx" }] };
  await admin.ask(`POST ${pods}`, { metadata: { name: pod }, spec });
  const token = await scene.setting.podToken(pod);
  // Each proxy gets a lease of its own, so that the two results are independent.
  for (const side of ["watchkeeper", "naive proxy"] as const) await haunt(scene, side, token);
  await scene.pause(2 * renewMs);
  scene.begin();
  scene.report("kubectl", `deletes pod ${pod}; its node is out of reach, and it lives on`);
  await admin.ask(`DELETE ${pods}/${pod}?gracePeriodSeconds=0`);
  const reported = await scene.found("lease-ghost-holder");
  const proof = reported?.evidence[0] ?? "";
  const isNamed = proof.includes(ghostAt);
  const other = await lookedAt(scene);
  return {
    rows: [
      {
        what: "its lease is held, and the pod is gone",
        without: other.isHeld && scene.naiveWords === 0 ? "not reported" : "reported",
        with: `told ${whenReported(reported)}`,
      },
      {
        what: "where it lives",
        without: other.isNamed ? ghostAt : "the lease does not say",
        with: isNamed ? ghostAt : "not told",
      },
    ],
    broken: brokenOf({
      "the operator was not told": reported !== undefined,
      "its address was not told": isNamed,
    }),
  };
}

/**
 * Reads the lease, as kubectl would. `isHeld`: the deleted pod still renews the lease. `isNamed`: the lease contains
 * the pod's address.
 */
async function lookedAt(scene: Scene): Promise<{ readonly isHeld: boolean; readonly isNamed: boolean }> {
  const kubectl = scene.client("naive proxy");
  const look = async (): Promise<string> =>
    JSON.stringify((await kubectl.read(`GET ${leases}/${lockOf("naive proxy")}`)).body);
  const first = await look();
  await scene.pause(4 * renewMs);
  const second = await look();
  const gone = await kubectl.ask(`GET ${pods}/${pod}`);
  const isHeld = first !== second && second.includes(pod) && gone === 404;
  scene.report(
    "kubectl",
    `sees the lease ${isHeld ? "renewed" : "let go"}, by ${pod}; asked for that pod: ${gone}`,
  );
  return { isHeld, isNamed: second.includes(ghostAt) };
}

function lockOf(side: Contender): string {
  return side === "watchkeeper" ? "leader" : "leader-elsewhere";
}

/** Acts as the process of the deleted pod: renews the lease until the replay of the incident ends. */
async function haunt(scene: Scene, side: Contender, token: string): Promise<void> {
  const fields = { authorization: `Bearer ${token}`, "user-agent": "nginx-controller/v1" };
  const connected = (): DemoClient => scene.client(side, { fields, localAddress: ghostAt });
  const lock = lockOf(side);
  let ghost = connected();
  let version = versionOf((await ghost.read(`POST ${leases}`, leaseOf(lock))).body);
  const renew = async (): Promise<void> => {
    for (;;) {
      // The update carries the Lease's current version, because an apiserver accepts no other.
      const { status, body } = await ghost.read(`PUT ${leases}/${lock}`, leaseOf(lock, version));
      if (status === 0) ghost = connected();
      version = versionOf(status === 200 ? body : (await ghost.read(`GET ${leases}/${lock}`)).body);
      await scene.pause(renewMs);
    }
  };
  void renew();
}

function versionOf(lease: Json): string {
  return textOf(mapOf(mapOf(lease)["metadata"])["resourceVersion"]);
}

function leaseOf(name: string, resourceVersion?: string): object {
  const renewTime = dateOf(wallClock.wall()).toISOString().replace("Z", "000Z");
  const spec = { holderIdentity: `${pod}_0c4e`, leaseDurationSeconds: 15, renewTime, leaseTransitions: 0 };
  return { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { name, resourceVersion }, spec };
}
