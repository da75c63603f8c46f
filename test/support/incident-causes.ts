/**
 * Reproduces the causes of five documented incidents on a running proxy (incident-stage.ts). Each function returns what
 * the proxy must find, and how to remove the cause.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { wallClock } from "../../src/base/clock.ts";
import { limits } from "../../src/base/limits.ts";
import { ledgerLimits } from "../../src/ops/ledger/limits.ts";
import type { Pair } from "../../src/ops/pki/pki.ts";
import { leaseOf, type Stage } from "./incident-stage.ts";
import { jwt } from "./jwt.ts";
import { testPki } from "./pki.ts";

export type Cause = {
  /** The incident's kind. */
  readonly kind: string;
  /** The subject of the incident, and a pattern that its summary or evidence must match. */
  readonly culprit: string;
  readonly evidence: RegExp;
  /** When the cause became visible on the wire, on the clock of performance.now(). */
  readonly since: number;
  /** Removes the cause; undefined if only time removes it. */
  readonly heal?: () => void | Promise<void>;
};

const leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
const pods = "/api/v1/namespaces/default/pods";

/**
 * Incident 000: the key file holds the key of another certificate. The listener of the stage has `reloadInterval: 1s`.
 */
export async function badSecret({ proxy }: Stage): Promise<Cause> {
  const { authority, serving } = await testPki();
  const file = join(proxy.directory, "tls.key");
  const other = authority.issue({ name: "other", hosts: ["localhost"] });
  const since = performance.now();
  writeFileSync(file, other.key, { mode: 0o600 });
  return {
    kind: "certificate-refused",
    culprit: "kube",
    evidence: /tls\.key/,
    since,
    heal: () => writeFileSync(file, serving.key, { mode: 0o600 }),
  };
}

/** Incident 001: a client opens the same watch from the same resourceVersion again and again. */
export async function replayLoop(stage: Stage): Promise<Cause> {
  const client = stage.caller({ "user-agent": "looping-operator/v2" });
  const path = `/api/v1/namespaces/default/configmaps?watch=1&resourceVersion=${stage.store.revision}`;
  for (let times = 0; times <= limits.replays; times += 1) await (await client.watch(path)).end();
  const since = performance.now();
  return { kind: "watch-replay-loop", culprit: "looping-operator/v2", evidence: /\/configmaps/, since };
}

/** Incident 002: a deleted pod keeps renewing its lease. */
export async function ghostHolder(stage: Stage): Promise<Cause> {
  const holder = "nginx-7d4f-x2k4l_0c4e";
  const pod = "nginx-7d4f-x2k4l";
  const claims = { namespace: "default", pod: { name: pod } };
  const token = jwt({ sub: "system:serviceaccount:default:nginx", "kubernetes.io": claims });
  const fields = { authorization: `Bearer ${token}`, "user-agent": "nginx-controller/v1" };
  const admin = stage.caller({ "user-agent": "kubectl/v1" });
  const ghost = stage.caller(fields, "127.0.0.9");
  await admin.ask(`POST ${pods}`, { metadata: { name: pod } });
  await ghost.ask(`POST ${leases}`, leaseOf("leader", holder));
  await admin.ask(`DELETE ${pods}/${pod}?gracePeriodSeconds=0`);
  await sleep(ledgerLimits.podGoneMs + 100);
  const since = performance.now();
  await ghost.ask(`PUT ${leases}/leader`, leaseOf("leader", holder));
  return {
    kind: "lease-ghost-holder",
    culprit: "127.0.0.9",
    evidence: /was deleted .* still renews from 127\.0\.0\.9/,
    since,
  };
}

/**
 * Incident 003: the loopback certificate of an apiserver expires in 20 days. The second apiserver of the stage has it
 * from the start.
 */
export async function shortLoopback(): Promise<Pair> {
  const { authority } = await testPki();
  const notAfter = wallClock.wall() + 20 * 86_400_000;
  return authority.issue({ name: "apiserver-loopback-client", notAfter });
}

export function loopbackCertificate(): Cause {
  const evidence = /expires in 19 days: not after/;
  return { kind: "loopback-certificate-expiring", culprit: "cp-2", evidence, since: performance.now() };
}

/**
 * The incident that started the project: an apiserver that freezes. The stage must have been started with backends that
 * can be frozen.
 */
export async function silentApiserver(stage: Stage): Promise<Cause> {
  const caller = stage.caller({ "user-agent": "kubelet/v1" });
  await caller.watch("/api/v1/configmaps?watch=1&resourceVersion=1");
  const [victim] = stage.embedded.toSorted((a, b) => b.watchCount - a.watchCount);
  const since = performance.now();
  await victim?.strike("freeze");
  return {
    kind: "backend-frozen",
    culprit: victim?.name ?? "",
    evidence: /PING unanswered/,
    since,
    heal: async () => {
      await victim?.heal("freeze");
    },
  };
}
