/**
 * Sends requests to apiservers: in a pod with the service account's token, elsewhere with a kubeconfig
 * (kubernetes-child.ts). Each request uses a new socket, so that a hanging request does not block later ones.
 */
import { readFileSync } from "node:fs";
import { wallClock } from "../../base/clock.ts";
import { Failure, failureFrom, wordsOf } from "../../base/failure.ts";
import { parseJson } from "../../base/json.ts";
import { readToken } from "../../base/read-text.ts";
import { type HttpRequest, type HttpServer, sendRequest } from "../http/http-client.ts";
import { discoveryLimits } from "./limits.ts";

export type ApiRequest = {
  readonly path: string;
  /** The body of a POST; default: the request is a GET. */
  readonly body?: object;
  readonly timeoutMs: number;
};

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
    // The file is read for each request, because the kubelet rotates the token.
    const token = readToken(`${this.#directory}/token`);
    if (token instanceof Failure) return token;
    const { caFile, serverName } = this.#access();
    const { signal } = this.#end;
    const headers = { authorization: `Bearer ${token}` };
    try {
      const known = { origin: server, serverName, tls: { ca: readFileSync(caFile) } };
      return { answer: await jsonFrom(known, { ...request, headers, signal }) };
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
 * Returns the parsed body of a 2xx response. @throws {Error} as a rejected promise, for another status, a body that is
 * too large or not JSON, a timeout, or a connection error
 */
export async function jsonFrom(
  { origin, ...server }: HttpServer,
  { path, body, timeoutMs, headers, ...rest }: ApiRequest & Pick<HttpRequest, "headers" | "signal">,
): Promise<unknown> {
  const sent = body === undefined ? {} : { "content-type": "application/json" };
  const { status, bytes } = await sendRequest(
    { origin: new URL(origin).origin, ...server },
    {
      ...rest,
      // The server of a kubeconfig may have a path.
      path: `${new URL(origin).pathname.replace(/\/$/, "")}${path}`,
      headers: { ...headers, accept: "application/json", ...sent },
      body: body && JSON.stringify(body),
    },
    { clock: wallClock, timeoutMs, mostBytes: discoveryLimits.discoveryBytes },
  );
  if (status < 200 || status > 299) throw new Error(`answered ${status}`);
  const answer = parseJson(bytes.toString());
  if (answer === undefined) throw new Error("the response is not JSON");
  return answer;
}

/**
 * Asks each server in turn until `read` accepts an answer, or until a Failure shows that the other servers would fail
 * as well. `read` rejects an answer by throwing the reason.
 */
export async function firstAnswer<T>(
  transport: Pick<Transport, "ask">,
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
