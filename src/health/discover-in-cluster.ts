/**
 * Asks Kubernetes for its apiservers as a pod may: with the service account's token, in one plain request each time. No
 * kubeconfig and no plugin, so nothing here needs the package whose child process takes 85 MB: a sidecar has no room.
 */
import { readFileSync } from "node:fs";
import https from "node:https";
import tls from "node:tls";
import { isIpAddress } from "../address.ts";
import { wallClock } from "../clock.ts";
import { Failure, failureFrom, timeout } from "../failure.ts";
import { limits } from "../limits.ts";
import { readText } from "../read-text.ts";
import { type Found, foundAt, type Question } from "./discovered.ts";
import type { Source } from "./discovery.ts";
import { type Place, placesInLeases, placesInSlices } from "./kubernetes-objects.ts";

/** Where the kubelet, or our sidecar, puts token and CA (client-go's rest.InClusterConfig). */
const accountDirectory = "/var/run/secrets/kubernetes.io/serviceaccount";

type Access = Pick<Question, "from" | "servers" | "caFile" | "serverName">;

const lists = {
  endpointslice:
    "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices?limit=500&labelSelector=kubernetes.io%2Fservice-name%3Dkubernetes",
  leases:
    "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases?limit=500&labelSelector=apiserver.kubernetes.io%2Fidentity%3Dkube-apiserver",
};

export class InClusterSource implements Source {
  readonly #access: () => Access;
  readonly #directory: string;
  #giveUp = new AbortController();

  /** `access` is read anew for each look; its servers are asked in turn, and the in-cluster service after them. */
  constructor(access: () => Access, directory = accountDirectory) {
    this.#access = access;
    this.#directory = directory;
  }

  get from(): string {
    return this.#access().from;
  }

  async ask(): Promise<readonly Found[] | Failure> {
    const access = this.#access();
    const token = readText(`${this.#directory}/token`, limits.tokenBytes);
    if (token instanceof Failure) return failed(`The service account's token ${token.message}`);
    this.#giveUp = new AbortController();
    const failures: string[] = [];
    for (const server of [...access.servers.slice(0, limits.discoveryServers - 1), serviceUrl()]) {
      const places = await this.#placesFrom(server, access, token.trim());
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
      const body = await get(`${server}${lists[access.from]}`, {
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

/** As every client in a pod puts it together; the kubelet sets both in every container. */
function serviceUrl({ env } = process): string {
  const host = env["KUBERNETES_SERVICE_HOST"] ?? "kubernetes.default.svc";
  return `https://${host.includes(":") ? `[${host}]` : host}:${env["KUBERNETES_SERVICE_PORT"] ?? "443"}`;
}

function placesIn(list: unknown, from: Access["from"]): readonly Place[] | Failure {
  const items: unknown =
    typeof list === "object" && list !== null && "items" in list ? list.items : undefined;
  if (!Array.isArray(items)) return failed("answered with no list");
  if (from === "endpointslice") return placesInSlices(items);
  return placesInLeases(items, wallClock.wall());
}

type Ask = { readonly access: Access; readonly token: string; readonly signal: AbortSignal };

/** The body of a 200; each time on a new socket, so that one that hangs holds up nothing that comes later. */
function get(url: string, { access, token, signal }: Ask): Promise<string | Failure> {
  const { hostname } = new URL(url);
  const serverName = access.serverName ?? hostname.replace(/^\[(.*)\]$/, "$1");
  return new Promise((resolve, reject) => {
    const request = https.get(url, {
      agent: false,
      ca: readFileSync(access.caFile),
      minVersion: "TLSv1.2",
      // An IP address is no SNI name (RFC 6066 §3), but the certificate is checked against it all the same.
      servername: isIpAddress(serverName) ? "" : serverName,
      checkServerIdentity: (_name, certificate) => tls.checkServerIdentity(serverName, certificate),
      headers: { authorization: `Bearer ${token}`, accept: "application/json" },
      signal,
    });
    const stopTimer = wallClock.after(limits.discoveryAskMs, () =>
      request.destroy(timeout(`no answer in ${limits.discoveryAskMs} ms`)),
    );
    request.once("close", stopTimer);
    request.once("error", reject);
    request.once("response", (response) => {
      if (response.statusCode !== 200) {
        resolve(failed(`answered ${response.statusCode}`));
        request.destroy();
        return;
      }
      let text = "";
      response.setEncoding("utf8");
      response.on("error", reject);
      response.on("data", (chunk: string) => {
        text += chunk;
        if (text.length > limits.discoveryBytes) request.destroy(new Error("answered with too much"));
      });
      response.once("end", () => resolve(text));
    });
  });
}
