/**
 * Tests a new CA, or a new certificate of the proxy, at the ready backends before it replaces one that works. A valid
 * file may belong to another cluster.
 */
import type { Socket } from "node:net";
import type { Clock } from "../../base/clock.ts";
import { Failure, metOf } from "../../base/failure.ts";
import { quote } from "../../config/problem.ts";
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
    return [
      resultOf({ address: { ...address, tls: { ...address.tls, ca } }, clock, objectionTo: untrusted }),
    ];
  });
  return verdictOn(await Promise.all(results), subjectsIn(ca), "presents a certificate from another CA");
}

/**
 * Returns undefined if a backend accepts the proxy's certificate, or none gives a result. `field`: a header line of the
 * test request; "": none.
 */
export async function provePair(
  pair: ServingPair,
  { ready, field }: { readonly ready: readonly BackendAddress[]; readonly field: string },
  clock: Clock,
): Promise<Failure | undefined> {
  const results = ready
    .filter(({ tls }) => tls !== undefined)
    .map((address) => resultOf({ address, clock, objectionTo: unauthorized, request: { pair, field } }));
  return verdictOn(await Promise.all(results), subjectsIn(pair.chain).slice(0, 1), "rejects it");
}

/** What a backend answers: its status line ("" if only a handshake was requested), or the error on its socket. */
type Outcome = string | Error;

/**
 * Returns the status line if the backend rejects the certificate (401), and "" for any other status. Undefined for an
 * error, which shows nothing about the certificate.
 */
function unauthorized(outcome: Outcome): string | undefined {
  if (outcome instanceof Error) return undefined;
  return outcome.startsWith("HTTP/1.1 401 ") ? outcome.trimEnd() : "";
}

/**
 * Returns "" after a complete handshake, and the message if the backend's certificate does not verify against the CA.
 * Undefined for any other error, which is a problem of that backend alone.
 */
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
  const message = `the certificate of ${of} is unsuitable: backend ${against.backend} ${verdict} (${String(against.objection)})`;
  return new Failure("bad-file", "proxy", message);
}

type Trial = {
  readonly address: BackendAddress;
  readonly clock: Clock;
  readonly objectionTo: (outcome: Outcome) => string | undefined;
  /** The request to send; undefined: the test is a TLS handshake alone. */
  readonly request?: { readonly pair: ServingPair; readonly field: string };
};

/** Tries one backend on a new socket, which is closed after the first result. */
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
    // This listener stays, because an "error" event without a listener would end the process.
    socket.on("error", (reason) => end(objectionTo(reason)));
    socket.once("close", () => end(undefined));
    socket.once("secureConnect", () => {
      if (request === undefined) return end(objectionTo(""));
      const { field } = request;
      const fields = ["Host: kubernetes", "User-Agent: watchkeeper-probe", field, "Connection: close"];
      const lines = ["GET /readyz HTTP/1.1", ...fields.filter((line) => line !== ""), "", ""];
      socket.write(lines.join("\r\n"));
      // Reads only the first chunk, because HTTP servers send the status line in one piece.
      socket.once("data", (chunk: Buffer) => end(objectionTo(firstLine(chunk))));
    });
  });
}

function firstLine(chunk: Buffer): string {
  return chunk.toString("latin1", 0, 80).split("\r\n")[0] ?? "";
}
