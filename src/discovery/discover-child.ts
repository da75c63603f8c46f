/**
 * The child process that queries Kubernetes with a kubeconfig: for the addresses of its apiservers (discovered.ts), or
 * for a review (reviewer.ts). One question in, one reply out, over its IPC channel. It has no state worth keeping: its
 * parent ends a slow child and starts another.
 */
import {
  AuthenticationV1Api,
  AuthorizationV1Api,
  CoordinationV1Api,
  DiscoveryV1Api,
  KubeConfig,
} from "@kubernetes/client-node";
import { wallClock } from "../base/clock.ts";
import { Failure, failureFrom } from "../base/failure.ts";
import type { Question, Reply } from "./discovered.ts";
import { type Place, peerAddress, placesInLeases, placesInSlices } from "./kubernetes-objects.ts";
import { discoveryLimits } from "./limits.ts";
import type { Review, ReviewQuestion } from "./reviewer.ts";

type Asked = Pick<Question, "kubeconfigFile" | "servers" | "caFile" | "serverName">;

async function answer(question: Question): Promise<Reply> {
  const { id } = question;
  const addresses = await firstIn(configsFor(question), discoveryLimits.discoveryAskMs, async (config) => {
    const places = await placesFrom(config, question);
    if (places.length > 0) return places;
    throw new Error(`knows no apiserver: ${hintFor(question)}`);
  });
  return addresses instanceof Failure ? { id, failure: addresses.message } : { id, addresses };
}

async function review(question: ReviewQuestion): Promise<object> {
  const { id, review: asked } = question;
  const patienceMs = discoveryLimits.reviewMs / discoveryLimits.reviewServers;
  const configs = configsFor(question).slice(0, discoveryLimits.reviewServers);
  const answered = await firstIn(configs, patienceMs, (config) => reviewedBy(config, asked));
  return answered instanceof Failure ? { id, failure: answered.message } : { id, answer: answered };
}

function reviewedBy(config: KubeConfig, { kind, body }: Review): Promise<object> {
  return kind === "TokenReview"
    ? config.makeApiClient(AuthenticationV1Api).createTokenReview({ body: { spec: { token: "" }, ...body } })
    : config.makeApiClient(AuthorizationV1Api).createSubjectAccessReview({ body: { spec: {}, ...body } });
}

/** Queries each server on a new socket, so that a hanging one does not block later ones. */
async function firstIn<T>(
  configs: readonly KubeConfig[],
  patienceMs: number,
  ask: (config: KubeConfig) => Promise<T>,
): Promise<T | Failure> {
  const failures: string[] = [];
  for (const config of configs) {
    try {
      return await inTime(ask(config), patienceMs);
    } catch (reason) {
      failures.push(`${serverOf(config)}: ${sentenceOf(reason)}`);
    }
  }
  return new Failure("backend-refused", "backend", failures.join("; "));
}

/** The given credentials for each known backend, and last for the servers in the kubeconfig itself. */
function configsFor({ kubeconfigFile, servers, caFile, serverName }: Asked): readonly KubeConfig[] {
  const own = new KubeConfig();
  own.loadFromFile(kubeconfigFile);
  const user = own.getCurrentUser() ?? { name: "none" };
  const direct = servers.slice(0, discoveryLimits.discoveryServers - 1).map((server) => {
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

async function inTime<T>(answered: Promise<T>, patienceMs: number): Promise<T> {
  const late = Promise.withResolvers<never>();
  const stop = wallClock.after(patienceMs, () => late.reject(new Error(`no answer in ${patienceMs} ms`)));
  try {
    return await Promise.race([answered, late.promise]);
  } finally {
    stop();
  }
}

async function placesFrom(config: KubeConfig, { from }: Question): Promise<readonly Place[]> {
  if (from === "EndpointSlice") {
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
  return from === "Lease" ? `no Lease carries ${peerAddress}` : "no endpoint of default/kubernetes is ready";
}

function serverOf(config: KubeConfig): string {
  return config.getCurrentCluster()?.server ?? "no server";
}

/** An API error contains a whole HTTP message with headers; its code is enough. */
function sentenceOf(reason: unknown): string {
  if (reason instanceof Error && "code" in reason && typeof reason.code === "number")
    return `answered ${reason.code}`;
  const cause = reason instanceof Error && reason.cause instanceof Error ? reason.cause : reason;
  return failureFrom(cause, "backend").message.split("\n")[0] ?? "";
}

process.on("message", (question: Question | ReviewQuestion) => {
  const answered: Promise<object> = "review" in question ? review(question) : answer(question);
  answered
    .catch((reason: unknown): Reply => ({ id: question.id, failure: sentenceOf(reason) }))
    .then((reply) => process.send?.(reply))
    .catch(() => process.exit(1));
});
// The parent has ended, so there is no reader for a reply.
process.on("disconnect", () => process.exit(0));
