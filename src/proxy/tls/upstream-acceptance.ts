/**
 * Tests a new CA, or a new certificate of the proxy, at the ready backends before it replaces one that works. A valid
 * file may belong to another cluster.
 */
import { once } from "node:events";
import type { Socket } from "node:net";
import type { Clock } from "../../base/clock.ts";
import { Failure, metOf, wordsOf } from "../../base/failure.ts";
import { quote } from "../../config/problem.ts";
import { answerOf, SocketAgent } from "../../health/probes/socket-request.ts";
import type { AssertingPolicy } from "../identity/asserted-identity.ts";
import { answerTo, type CanaryAnswer, canaryBody, canaryFor, canaryPath } from "../identity/canary.ts";
import { type BackendAddress, openSocket } from "../net/connect.ts";
import { type ServingPair, subjectsIn } from "./serving-pair.ts";

/** Ms that a backend has to answer when a CA or certificate is tested. A slower backend gives no result. */
export const proofMs = 3000;

/** objection: why the backend rejects the file; "": it accepts the file; undefined: no result. */
type Result = { readonly backend: string; readonly objection: string | undefined };

/** Returns undefined if some backend's certificate verifies against these CAs, or if no backend gives a result. */
export async function proveCaBundle(
  ca: string,
  ready: readonly BackendAddress[],
  clock: Clock,
): Promise<Failure | undefined> {
  const results = ready.flatMap((address) => {
    if (address.tls === undefined) return [];
    return [resultOf({ ...address, tls: { ...address.tls, ca } }, clock)];
  });
  return verdictOn(await Promise.all(results), subjectsIn(ca), "presents a certificate from another CA");
}

/** Asks a backend on a new socket whose request it sees if the proxy asserts an invented identity with this certificate. */
export async function askCanary(
  pair: ServingPair,
  policy: AssertingPolicy,
  { address, clock }: { readonly address: BackendAddress; readonly clock: Clock },
): Promise<CanaryAnswer> {
  const canary = canaryFor(policy);
  const socket = openSocket(address, "http/1.1", pair);
  // This listener stays, because an "error" event without a listener would end the process.
  socket.on("error", () => {});
  const cancel = clock.after(proofMs, () => socket.destroy(new Error(`no answer in ${proofMs} ms`)));
  const fields = canary.fields.map(({ name, value }) => [name, value] as const);
  try {
    await once(socket, address.tls === undefined ? "connect" : "secureConnect");
    const request = { fields, post: canaryBody };
    return answerTo(canary, await answerOf(new SocketAgent(socket), canaryPath, request));
  } catch (reason) {
    return { kind: "none", problem: wordsOf(reason) };
  } finally {
    cancel();
    socket.destroy();
  }
}

/**
 * Returns "" after a complete handshake, and the message if the backend's certificate does not verify against the CA.
 * Undefined for any other error, which is a problem of that backend alone.
 */
function untrusted(outcome: Error | undefined): string | undefined {
  if (outcome === undefined) return "";
  return metOf(outcome) === "untrusted" ? outcome.message : undefined;
}

function verdictOn(
  results: readonly Result[],
  subjects: readonly string[],
  verdict: string,
): Failure | undefined {
  const against = results.find(({ objection }) => objection !== undefined && objection !== "");
  if (against === undefined || results.some(({ objection }) => objection === "")) return undefined;
  const of = subjects.map((subject) => quote(subject)).join(", ");
  const message = `the certificate of ${of} is unsuitable: backend ${against.backend} ${verdict} (${String(against.objection)})`;
  return new Failure("bad-file", "proxy", message);
}

/** Shakes hands with one backend on a new socket. */
function resultOf(address: BackendAddress, clock: Clock): Promise<Result> {
  const backend = address.name;
  return new Promise((resolve) => {
    const socket: Socket = openSocket(address, "http/1.1");
    const end = (objection: string | undefined): void => {
      cancel();
      socket.destroy();
      resolve({ backend, objection });
    };
    const cancel = clock.after(proofMs, () => end(undefined));
    // This listener stays, because an "error" event without a listener would end the process.
    socket.on("error", (reason) => end(untrusted(reason)));
    socket.once("close", () => end(undefined));
    socket.once("secureConnect", () => end(untrusted(undefined)));
  });
}
