/**
 * Sends requests to other replicas, each on a new connection: a kept connection of every replica would fill the 64
 * sockets of an admin port. Follows no redirect, bounds time and bytes, and uses plain HTTP on loopback only.
 */
import http, { type OutgoingHttpHeaders } from "node:http";
import https, { type RequestOptions } from "node:https";
import tls from "node:tls";
import { isIpAddress, isLoopback, textOf } from "../../base/address.ts";
import type { Clock } from "../../base/clock.ts";
import { Failure, failureFrom, timeout } from "../../base/failure.ts";
import { parseJson } from "../../base/json.ts";
import { limits } from "../../base/limits.ts";
import { readText } from "../../base/read-text.ts";
import { replicaLimits } from "./limits.ts";
import { factsIn, type ReplicaFacts, replicaPath } from "./replica.ts";
import type { ReplicaTarget } from "./replicas.ts";

export type ReplicaRequest = {
  /** Path and query, in ASCII without spaces. */
  readonly path: string;
  readonly headers: OutgoingHttpHeaders;
  /** The body of a POST; default: the request is a GET. */
  readonly body?: string;
  readonly timeoutMs: number;
  readonly mostBytes: number;
};

export type ReplicaResponse = { readonly status: number; readonly text: string };

export type SendToReplica = (
  target: ReplicaTarget,
  request: ReplicaRequest,
) => Promise<ReplicaResponse | Failure>;

/** Returns the function that sends requests. It returns a Failure if there is no response, or one that is too long. */
export function replicaClient(clock: Clock): SendToReplica {
  return async (target, request) => {
    const options = optionsFor(target);
    if (options instanceof Failure) return options;
    try {
      return await exchange(options, request, clock);
    } catch (reason) {
      return failureFrom(reason, "backend");
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
  const facts = outcome.status === 200 ? factsIn(parseJson(outcome.text)) : undefined;
  if (facts !== undefined) return facts;
  return new Failure("backend-protocol", "backend", `Not a watchkeeper replica: status ${outcome.status}`);
}

type Options = RequestOptions & { readonly isEncrypted: boolean };

function optionsFor({ address, tls: secured }: ReplicaTarget): Options | Failure {
  const { host, port } = address;
  const plain = { host, port, agent: false, isEncrypted: false };
  if (secured === undefined) {
    // The configuration forbids such an address, but a name may resolve to it.
    if (isLoopback(host)) return plain;
    return new Failure(
      "bad-request",
      "proxy",
      `${textOf(address)} is not on loopback, and admin.tls is not set`,
    );
  }
  const ca = readText(secured.caFile, limits.certificateBytes);
  if (ca instanceof Failure) return new Failure("bad-file", "proxy", `"${secured.caFile}" ${ca.message}`);
  const { serverName = host } = secured;
  return {
    ...plain,
    isEncrypted: true,
    ca,
    // Stated, because an environment variable of Node's would otherwise turn the verification off.
    rejectUnauthorized: true,
    minVersion: "TLSv1.2",
    // An IP address is not sent as SNI (RFC 6066 §3). `checkServerIdentity` verifies it instead.
    servername: isIpAddress(serverName) ? "" : serverName,
    checkServerIdentity: (_name, certificate) => tls.checkServerIdentity(serverName, certificate),
  };
}

function exchange(
  { isEncrypted, ...options }: Options,
  { path, headers, body, timeoutMs, mostBytes }: ReplicaRequest,
  clock: Clock,
): Promise<ReplicaResponse> {
  return new Promise((resolve, reject) => {
    const method = body === undefined ? "GET" : "POST";
    const all = { ...options, path, method, headers: { ...headers, connection: "close" } };
    const request = isEncrypted ? https.request(all) : http.request(all);
    const stopTimer = clock.after(timeoutMs, () => request.destroy(timeout(`no answer in ${timeoutMs} ms`)));
    request.once("close", stopTimer);
    request.once("error", reject);
    request.once("response", (response) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      response.once("error", reject);
      response.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes <= mostBytes) {
          chunks.push(chunk);
          return;
        }
        // Rejects here, because a request whose response is complete reports no error when it is destroyed.
        reject(new Error(`an answer of more than ${mostBytes} bytes`));
        request.destroy();
      });
      response.once("end", () =>
        resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() }),
      );
    });
    request.end(body);
  });
}
