/**
 * Sends requests to apiservers: in a pod with the service account's token, elsewhere with a kubeconfig
 * (kubernetes-child.ts). Each request uses a new socket, so that a hanging request does not block later ones.
 */
import { readFileSync } from "node:fs";
import type { PeerCertificate } from "node:tls";
import { isIpAddress } from "../base/address.ts";
import { Failure, failureFrom, wordsOf } from "../base/failure.ts";
import { limits } from "../base/limits.ts";
import { readText } from "../base/read-text.ts";
import { checkServerName } from "../x509/trust.ts";
import { type ApiRequest, jsonFrom } from "./json-request.ts";

export type Access = {
  readonly servers: readonly string[];
  readonly caFile: string;
  readonly serverName: string | undefined;
};

export type Answer = { readonly answer: unknown };

export type Transport = {
  /** The server that the credentials name. It is asked after all other servers. */
  readonly own: string;
  /**
   * Returns the JSON of the response, or a Failure if asking another server would fail as well. @throws {Error} as a
   * rejected promise: this server cannot be reached, or refuses the request
   */
  ask(server: string, request: ApiRequest): Promise<Answer | Failure>;
  abort(): void;
};

/** The directory with the service account's token and CA, as in client-go's rest.InClusterConfig. */
const accountDirectory = "/var/run/secrets/kubernetes.io/serviceaccount";

/** Returns the service account's token. The file is read for each request, because the kubelet rotates the token. */
export function accountToken(directory: string): string | Failure {
  const token = readText(`${directory}/token`, limits.tokenBytes);
  if (token instanceof Failure)
    return new Failure("bad-file", "proxy", `The service account's token ${token.message}`);
  return token.trim();
}

/**
 * Builds the apiserver's URL from the two variables that the kubelet sets, as client-go's rest.InClusterConfig does.
 */
export function serviceUrl({ env } = process): string {
  const host = env["KUBERNETES_SERVICE_HOST"] ?? "kubernetes.default.svc";
  return `https://${host.includes(":") ? `[${host}]` : host}:${env["KUBERNETES_SERVICE_PORT"] ?? "443"}`;
}

export class AccountTransport implements Transport {
  readonly #access: () => Access;
  readonly #directory: string;
  #end = new AbortController();

  constructor(access: () => Access, directory = accountDirectory) {
    this.#access = access;
    this.#directory = directory;
  }

  get own(): string {
    return serviceUrl();
  }

  async ask(server: string, request: ApiRequest): Promise<Answer | Failure> {
    const token = accountToken(this.#directory);
    if (token instanceof Failure) return token;
    const { caFile, serverName = new URL(server).hostname.replace(/^\[(.*)\]$/, "$1") } = this.#access();
    const { signal } = this.#end;
    const options = {
      agent: false,
      ca: readFileSync(caFile),
      // An IP address is not sent as SNI (RFC 6066 §3). `checkServerIdentity` verifies it instead.
      servername: isIpAddress(serverName) ? "" : serverName,
      checkServerIdentity: (_name: string, certificate: PeerCertificate) =>
        checkServerName(serverName, certificate),
      headers: { authorization: `Bearer ${token}` },
      signal,
    } as const;
    try {
      return { answer: await jsonFrom(server, options, request) };
    } catch (reason) {
      if (signal.aborted) return failureFrom(reason, "proxy");
      throw reason;
    }
  }

  abort(): void {
    this.#end.abort();
    this.#end = new AbortController();
  }
}

/**
 * Asks each server in turn until `read` accepts an answer, or until a Failure shows that the other servers would fail
 * as well. `read` rejects an answer by throwing the reason.
 */
export async function firstAnswer<T>(
  transport: Transport,
  servers: readonly string[],
  request: ApiRequest,
  read: (answer: unknown) => T,
): Promise<T | Failure> {
  const failures: string[] = [];
  for (const server of servers) {
    try {
      const outcome = await transport.ask(server, request);
      return outcome instanceof Failure ? outcome : read(outcome.answer);
    } catch (reason) {
      failures.push(`${server || "the kubeconfig's server"}: ${wordsOf(reason)}`);
    }
  }
  return new Failure("backend-refused", "backend", failures.join("; "));
}
