/**
 * Tries a new CA, or a new certificate of the proxy's own, on the backends that are ready, before it replaces one that
 * works: it may look good and be another cluster's.
 */
import type { Socket } from "node:net";
import type { Clock } from "../../base/clock.ts";
import { Failure, metOf } from "../../base/failure.ts";
import { quote } from "../../config/problem.ts";
import { type BackendAddress, openSocket } from "../net/connect.ts";
import { type ServingPair, subjectsIn } from "./serving-pair.ts";

/** A backend that has not rejected a new client certificate within this time accepts it. */
export const proofMs = 3000;

/** One backend's result: "" is no objection, undefined no result at all. */
type Result = { readonly backend: string; readonly objection: string | undefined };

/** Undefined if a backend's certificate leads to one of the CAs, or if no backend gives a result. */
export async function proveCaBundle(
  ca: string,
  ready: readonly BackendAddress[],
  clock: Clock,
): Promise<Failure | undefined> {
  const results = ready.flatMap((address) => {
    if (address.tls === undefined) return [];
    return [
      resultOf({ address: { ...address, tls: { ...address.tls, ca } }, clock, objectionTo: untrusted }),
    ];
  });
  return verdictOn(await Promise.all(results), subjectsIn(ca), "leads to none of them");
}

/**
 * Undefined if a backend accepts the certificate as an identity, or if none gives a result. `field` is sent with the
 * request.
 */
export async function provePair(
  pair: ServingPair,
  { ready, field }: { readonly ready: readonly BackendAddress[]; readonly field: string },
  clock: Clock,
): Promise<Failure | undefined> {
  const results = ready
    .filter(({ tls }) => tls !== undefined)
    .map((address) => resultOf({ address, clock, objectionTo: unauthorized, request: { pair, field } }));
  return verdictOn(await Promise.all(results), subjectsIn(pair.chain).slice(0, 1), "does not take it");
}

/** What a backend answered, or the error on its socket. */
type Outcome = string | Error;

/**
 * Returns the status line if the backend rejected the certificate (401), "" if it accepted it (any other status), and
 * undefined on an error, which says nothing about the certificate.
 */
function unauthorized(outcome: Outcome): string | undefined {
  if (outcome instanceof Error) return undefined;
  return outcome.startsWith("HTTP/1.1 401 ") ? outcome.trimEnd() : "";
}

/** A finished handshake accepts the CA; an error of another kind is a problem of that backend. */
function untrusted(outcome: Outcome): string | undefined {
  if (!(outcome instanceof Error)) return "";
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
  const message = `the certificate of ${of} would not do: backend ${against.backend} ${verdict} (${String(against.objection)})`;
  return new Failure("bad-file", "proxy", message);
}

type Trial = {
  readonly address: BackendAddress;
  readonly clock: Clock;
  readonly objectionTo: (outcome: Outcome) => string | undefined;
  /** Without one the handshake alone is the outcome. */
  readonly request?: { readonly pair: ServingPair; readonly field: string };
};

/** Uses a socket of its own, closed after the first result. */
function resultOf({ address, clock, objectionTo, request }: Trial): Promise<Result> {
  const backend = address.name;
  return new Promise((resolve) => {
    const socket: Socket = openSocket(address, "http/1.1", request?.pair);
    const end = (objection: string | undefined): void => {
      cancel();
      socket.destroy();
      resolve({ backend, objection });
    };
    const cancel = clock.after(proofMs, () => end(undefined));
    // The listener stays: a socket without a listener for "error" would end the process.
    socket.on("error", (reason) => end(objectionTo(reason)));
    socket.once("close", () => end(undefined));
    socket.once("secureConnect", () => {
      if (request === undefined) return end(objectionTo(""));
      const { field } = request;
      const fields = ["Host: kubernetes", "User-Agent: watchkeeper-probe", field, "Connection: close"];
      const lines = ["GET /readyz HTTP/1.1", ...fields.filter((line) => line !== ""), "", ""];
      socket.write(lines.join("\r\n"));
      // Any HTTP server sends the status line in one piece; anything else is no result.
      socket.once("data", (chunk: Buffer) => end(objectionTo(firstLine(chunk))));
    });
  });
}

function firstLine(chunk: Buffer): string {
  return chunk.toString("latin1", 0, 80).split("\r\n")[0] ?? "";
}
