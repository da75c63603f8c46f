/**
 * Sends requests to other replicas. Each request uses a new connection, because connections that up to 64 replicas keep
 * open would fill the 64 sockets of an admin port. Follows no redirect, bounds time and bytes, and uses plain HTTP on
 * loopback only.
 */
import tls from "node:tls";
import { isLoopback, textOf } from "../../base/address.ts";
import type { Clock } from "../../base/clock.ts";
import { Failure, failureFrom } from "../../base/failure.ts";
import { parseJson } from "../../base/json.ts";
import { limits } from "../../base/limits.ts";
import { readText } from "../../base/read-text.ts";
import {
  type Bounds,
  type HttpRequest,
  type HttpResponse,
  type HttpServer,
  sendRequest,
} from "../../ops/http/http-client.ts";
import { clientTls } from "../../x509/trust.ts";
import { replicaLimits } from "./limits.ts";
import { factsIn, type ReplicaFacts, replicaPath } from "./replica.ts";
import type { ReplicaTarget } from "./replicas.ts";

export type ReplicaRequest = Omit<Bounds, "clock"> & HttpRequest;

export type SendToReplica = (
  target: ReplicaTarget,
  request: ReplicaRequest,
) => Promise<HttpResponse | Failure>;

/**
 * Returns the function that sends requests. The function returns a Failure if the replica does not answer, or if its
 * answer is too long.
 */
export function replicaClient(clock: Clock): SendToReplica {
  const ca = new TrustedCa();
  return async (target, { path, headers, body, ...bounds }) => {
    try {
      const server = serverAt(target, (file) => ca.read(file, clock.now()));
      if (server instanceof Failure) return server;
      return await sendRequest(server, { path, headers, body }, { ...bounds, clock });
    } catch (reason) {
      return reason instanceof Failure ? reason : failureFrom(reason, "backend");
    }
  };
}

/** Asks a replica about itself. */
export async function askReplica(
  send: SendToReplica,
  target: ReplicaTarget,
): Promise<ReplicaFacts | Failure> {
  const { askMs: timeoutMs, answerBytes: mostBytes } = replicaLimits;
  const outcome = await send(target, { path: replicaPath, headers: {}, timeoutMs, mostBytes });
  if (outcome instanceof Failure) return outcome;
  const facts = outcome.status === 200 ? factsIn(parseJson(outcome.bytes.toString())) : undefined;
  if (facts !== undefined) return facts;
  return new Failure("backend-protocol", "backend", `Not a watchkeeper replica: status ${outcome.status}`);
}

type Trusted = { readonly secureContext: tls.SecureContext; readonly ca: string };

/** Keeps the TLS context for the CA file. Reads the file once per `askEveryMs`, and parses it only after a change. */
class TrustedCa {
  #file = "";
  #readAt = 0;
  #trusted: Trusted | undefined;

  /** @throws {Error} if the file contains no certificate */
  read(file: string, now: number): Trusted | Failure {
    const isFresh = file === this.#file && now - this.#readAt < replicaLimits.askEveryMs;
    if (this.#trusted !== undefined && isFresh) return this.#trusted;
    const ca = readText(file, limits.certificateBytes);
    if (ca instanceof Failure) return new Failure("bad-file", "proxy", `"${file}" ${ca.message}`);
    if (ca !== this.#trusted?.ca)
      this.#trusted = { ca, secureContext: tls.createSecureContext({ ca, ...clientTls }) };
    this.#file = file;
    this.#readAt = now;
    return this.#trusted;
  }
}

function serverAt(
  { address, tls: secured }: ReplicaTarget,
  trusted: (file: string) => Trusted | Failure,
): HttpServer | Failure {
  if (secured === undefined) {
    // Plain HTTP is used on loopback only. The configuration requires TLS for all other addresses, but a name may still
    // resolve to an address outside of loopback.
    if (isLoopback(address.host)) return { origin: `http://${textOf(address)}` };
    return new Failure(
      "bad-request",
      "proxy",
      `${textOf(address)} is not on loopback, and admin.tls is not set`,
    );
  }
  const trust = trusted(secured.caFile);
  if (trust instanceof Failure) return trust;
  return { origin: `https://${textOf(address)}`, serverName: secured.serverName, tls: trust };
}
