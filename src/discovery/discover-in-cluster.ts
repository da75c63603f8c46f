/**
 * Queries Kubernetes for its apiservers as a pod: with the service account's token, in one plain request each time. It
 * needs no kubeconfig and no plugin, and therefore not the package whose child process takes 85 MB: a sidecar must stay
 * small.
 */
import { isIpAddress } from "../base/address.ts";
import { wallClock } from "../base/clock.ts";
import { Failure, failureFrom } from "../base/failure.ts";
import { accountDirectory, accountToken, requestAsAccount, serviceUrl } from "./account-request.ts";
import { type Found, foundAt, type Question } from "./discovered.ts";
import type { Source } from "./discovery.ts";
import { type Place, placesInLeases, placesInSlices } from "./kubernetes-objects.ts";
import { discoveryLimits } from "./limits.ts";

type Access = Pick<Question, "from" | "servers" | "caFile" | "serverName">;

const lists = {
  EndpointSlice:
    "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices?limit=500&labelSelector=kubernetes.io%2Fservice-name%3Dkubernetes",
  Lease:
    "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases?limit=500&labelSelector=apiserver.kubernetes.io%2Fidentity%3Dkube-apiserver",
};

export class InClusterSource implements Source {
  readonly expires = true;
  readonly #access: () => Access;
  readonly #directory: string;
  #giveUp = new AbortController();

  /** `access` is read for each lookup. Its servers are tried in turn, then the in-cluster service. */
  constructor(access: () => Access, directory = accountDirectory) {
    this.#access = access;
    this.#directory = directory;
  }

  get from(): string {
    return this.#access().from;
  }

  async ask(): Promise<readonly Found[] | Failure> {
    const access = this.#access();
    const token = accountToken(this.#directory);
    if (token instanceof Failure) return token;
    this.#giveUp = new AbortController();
    const failures: string[] = [];
    for (const server of [...access.servers.slice(0, discoveryLimits.discoveryServers - 1), serviceUrl()]) {
      const places = await this.#placesFrom(server, access, token);
      if (!(places instanceof Failure) && places.length > 0 && places.every(({ host }) => isIpAddress(host)))
        return places.map(({ host, port }) => foundAt(host, port));
      failures.push(`${server} ${places instanceof Failure ? places.message : "knows no apiserver"}`);
    }
    return failed(failures.join("; "));
  }

  giveUp(): void {
    this.#giveUp.abort();
  }

  stop(): void {
    this.#giveUp.abort();
  }

  async #placesFrom(server: string, access: Access, token: string): Promise<readonly Place[] | Failure> {
    try {
      const body = await requestAsAccount(`${server}${lists[access.from]}`, {
        access,
        token,
        signal: this.#giveUp.signal,
      });
      return body instanceof Failure ? body : placesIn(JSON.parse(body), access.from);
    } catch (reason) {
      return failed(`cannot be asked: ${failureFrom(reason, "backend").message}`);
    }
  }
}

function failed(message: string): Failure {
  return new Failure("bad-file", "proxy", message);
}

function placesIn(list: unknown, from: Access["from"]): readonly Place[] | Failure {
  const items: unknown =
    typeof list === "object" && list !== null && "items" in list ? list.items : undefined;
  if (!Array.isArray(items)) return failed("answered with no list");
  if (from === "EndpointSlice") return placesInSlices(items);
  return placesInLeases(items, wallClock.wall());
}
