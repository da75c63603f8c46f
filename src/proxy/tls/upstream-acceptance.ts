/**
 * Tests a new CA, or a new certificate of the proxy, at the ready backends before it replaces one that works. A valid
 * file may belong to another cluster.
 */
import { once } from "node:events";
import type { Socket } from "node:net";
import type { Clock } from "../../base/clock.ts";
import { Failure, metOf, wordsOf } from "../../base/failure.ts";
import { answerOf, SocketAgent } from "../../health/probes/socket-request.ts";
import { quote } from "../../ops/config/problem.ts";
import type { AssertingPolicy } from "../../upstream/identity/asserted-identity.ts";
import {
  answerTo,
  type CanaryAnswer,
  canaryBody,
  canaryFor,
  canaryPath,
} from "../../upstream/identity/canary.ts";
import { type BackendAddress, openSocket } from "../../upstream/net/connect.ts";
import { type ServingPair, subjectsIn } from "./serving-pair.ts";

/** Ms that a backend has to answer when a CA or certificate is tested. A slower backend gives no result. */
export const proofMs = 3000;

/** Returns undefined if some backend's certificate verifies against these CAs, or if no backend gives a result. */
export async function proveCaBundle(
  ca: string,
  ready: readonly BackendAddress[],
  clock: Clock,
): Promise<Failure | undefined> {
  const asked = ready.flatMap(({ tls, ...address }) =>
    tls === undefined ? [] : [objectionOf({ ...address, tls: { ...tls, ca } }, clock)],
  );
  const objections = await Promise.all(asked);
  const objection = objections.find((one) => one !== "" && one !== undefined);
  if (objection === undefined || objections.includes("")) return undefined;
  const of = subjectsIn(ca).map((subject) => quote(subject));
  return new Failure("bad-file", "proxy", `the certificate of ${of.join(", ")} is unsuitable: ${objection}`);
}

/**
 * Shakes hands with one backend. Returns "" if its certificate verifies, and a text that says why it does not.
 * Undefined for any other error, which is a problem of that backend alone.
 */
async function objectionOf(address: BackendAddress, clock: Clock): Promise<string | undefined> {
  try {
    return await onSocket(openSocket(address, "http/1.1"), "secureConnect", clock, async () => "");
  } catch (reason) {
    if (metOf(reason) !== "untrusted") return undefined;
    return `backend ${address.name} presents a certificate from another CA (${wordsOf(reason)})`;
  }
}

/** Asks a backend on a new socket whose request it sees if the proxy asserts an invented identity with this certificate. */
export async function askCanary(
  pair: ServingPair,
  policy: AssertingPolicy,
  { address, clock }: { readonly address: BackendAddress; readonly clock: Clock },
): Promise<CanaryAnswer> {
  const canary = canaryFor(policy);
  const fields = canary.fields.map(({ name, value }) => [name, value] as const);
  const socket = openSocket(address, "http/1.1", pair);
  const event = address.tls === undefined ? "connect" : "secureConnect";
  try {
    return await onSocket(socket, event, clock, async () =>
      answerTo(
        canary,
        await answerOf(new SocketAgent(socket, address.path), canaryPath, { fields, post: canaryBody }),
      ),
    );
  } catch (reason) {
    return { kind: "none", problem: wordsOf(reason) };
  }
}

/** Runs `ask` after the event that says that the socket is connected. Then, or after `proofMs`, destroys the socket. */
async function onSocket<T>(
  socket: Socket,
  connected: "connect" | "secureConnect",
  clock: Clock,
  ask: () => Promise<T>,
): Promise<T> {
  // This listener stays, because an "error" event without a listener would end the process.
  socket.on("error", () => {});
  const cancel = clock.after(proofMs, () => socket.destroy(new Error(`no answer in ${proofMs} ms`)));
  try {
    await once(socket, connected);
    return await ask();
  } finally {
    cancel();
    socket.destroy();
  }
}
