/**
 * The child process that asks Kubernetes where its apiservers are: one question in, one reply out, over its IPC
 * channel. It holds nothing that would be missed: its parent ends it when it is slow, and starts another.
 */
import { CoordinationV1Api, DiscoveryV1Api, KubeConfig } from "@kubernetes/client-node";
import { wallClock } from "../clock.ts";
import { failureFrom } from "../failure.ts";
import { limits } from "../limits.ts";
import type { Question, Reply } from "./discovered.ts";
import { type Place, peerAddress, placesInLeases, placesInSlices } from "./kubernetes-objects.ts";

/** Each server is asked on a new socket: one that hangs holds up nothing that comes later. */
async function answer(question: Question): Promise<Reply> {
  const failures: string[] = [];
  for (const config of configsFor(question)) {
    try {
      const addresses = await inTime(config, question);
      if (addresses.length > 0) return { id: question.id, addresses };
      failures.push(`${serverOf(config)} knows no apiserver: ${hintFor(question)}`);
    } catch (reason) {
      failures.push(`${serverOf(config)}: ${sentenceOf(reason)}`);
    }
  }
  return { id: question.id, failure: failures.join("; ") };
}

/** The given credentials, at each known backend and at last where they themselves point. */
function configsFor({ kubeconfigFile, servers, caFile, serverName }: Question): readonly KubeConfig[] {
  const own = new KubeConfig();
  own.loadFromFile(kubeconfigFile);
  const user = own.getCurrentUser() ?? { name: "nobody" };
  const direct = servers.slice(0, limits.discoveryServers - 1).map((server) => {
    const config = new KubeConfig();
    const tls = {
      caFile,
      skipTLSVerify: false,
      ...(serverName === undefined ? {} : { tlsServerName: serverName }),
    };
    config.loadFromClusterAndUser({ name: server, server, ...tls }, user);
    return config;
  });
  return [...direct, own];
}

async function inTime(config: KubeConfig, question: Question): Promise<readonly Place[]> {
  const late = Promise.withResolvers<never>();
  const stop = wallClock.after(limits.discoveryAskMs, () =>
    late.reject(new Error(`no answer in ${limits.discoveryAskMs} ms`)),
  );
  try {
    return await Promise.race([placesFrom(config, question), late.promise]);
  } finally {
    stop();
  }
}

async function placesFrom(config: KubeConfig, { from }: Question): Promise<readonly Place[]> {
  if (from === "endpointslice") {
    const labelSelector = "kubernetes.io/service-name=kubernetes";
    const api = config.makeApiClient(DiscoveryV1Api);
    const { items } = await api.listNamespacedEndpointSlice({
      namespace: "default",
      labelSelector,
      limit: 500,
    });
    return placesInSlices(items);
  }
  const labelSelector = "apiserver.kubernetes.io/identity=kube-apiserver";
  const api = config.makeApiClient(CoordinationV1Api);
  const { items } = await api.listNamespacedLease({ namespace: "kube-system", labelSelector, limit: 500 });
  return placesInLeases(items, wallClock.wall());
}

function hintFor({ from }: Question): string {
  return from === "leases" ? `no Lease carries ${peerAddress}` : "no endpoint of default/kubernetes is ready";
}

function serverOf(config: KubeConfig): string {
  return config.getCurrentCluster()?.server ?? "no server";
}

/** An API's refusal is a whole HTTP message with its headers; its code says it all. */
function sentenceOf(reason: unknown): string {
  if (reason instanceof Error && "code" in reason && typeof reason.code === "number")
    return `answered ${reason.code}`;
  const cause = reason instanceof Error && reason.cause instanceof Error ? reason.cause : reason;
  return failureFrom(cause, "backend").message.split("\n")[0] ?? "";
}

process.on("message", (question: Question) => {
  answer(question)
    .catch((reason: unknown): Reply => ({ id: question.id, failure: sentenceOf(reason) }))
    .then((reply) => process.send?.(reply))
    .catch(() => process.exit(1));
});
// The parent is gone: there is nobody to answer.
process.on("disconnect", () => process.exit(0));
