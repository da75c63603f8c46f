/**
 * Would the backends take this? A new CA, or a new certificate of ours, that looks good may be another cluster's: it is
 * tried on those that are ready before it takes the place of one that works.
 */
import type { Socket } from "node:net";
import type { Clock } from "../../base/clock.ts";
import { Failure, metOf } from "../../base/failure.ts";
import { limits } from "../../base/limits.ts";
import { quote } from "../../config/problem.ts";
import { type BackendAddress, openSocket } from "../net/connect.ts";
import { type ServingPair, subjectsIn } from "./serving-pair.ts";

/** One backend's word; "" says nothing against it, undefined nothing at all. */
type Word = { readonly backend: string; readonly objection: string | undefined };

/** Undefined when a backend's certificate leads to one of them, or when no backend says anything. */
export async function proveCaBundle(
  ca: string,
  ready: readonly BackendAddress[],
  clock: Clock,
): Promise<Failure | undefined> {
  const words = ready.flatMap((address) => {
    if (address.tls === undefined) return [];
    const other = { ...address, tls: { ...address.tls, ca } };
    return [asked({ address: other, clock, word: (said) => (said instanceof Error ? untrusted(said) : "") })];
  });
  return judged(await Promise.all(words), subjectsIn(ca), "leads to none of them");
}

/** Undefined when a backend takes it for somebody's, or when none says anything. `field` goes with the question. */
export async function provePair(
  pair: ServingPair,
  { ready, field }: { readonly ready: readonly BackendAddress[]; readonly field: string },
  clock: Clock,
): Promise<Failure | undefined> {
  const words = ready
    .filter(({ tls }) => tls !== undefined)
    .map((address) => asked({ address, clock, word: refusal, question: { pair, field } }));
  return judged(await Promise.all(words), subjectsIn(pair.chain).slice(0, 1), "does not take it");
}

/** Any other answer takes us for somebody; an error is that backend's own trouble. */
function refusal(said: string | Error): string | undefined {
  if (said instanceof Error) return undefined;
  return said.startsWith("HTTP/1.1 401 ") ? said.trimEnd() : "";
}

/** An error of another kind is that backend's own trouble. */
function untrusted(reason: Error): string | undefined {
  return metOf(reason) === "untrusted" ? reason.message : undefined;
}

function judged(words: readonly Word[], subjects: readonly string[], verdict: string): Failure | undefined {
  const against = words.find(({ objection }) => objection !== undefined && objection !== "");
  if (against === undefined || words.some(({ objection }) => objection === "")) return undefined;
  const of = subjects.map((subject) => quote(subject)).join(", ");
  const message = `the certificate of ${of} would not do: backend ${against.backend} ${verdict} (${String(against.objection)})`;
  return new Failure("bad-file", "proxy", message);
}

type Asked = {
  readonly address: BackendAddress;
  readonly clock: Clock;
  readonly word: (said: string | Error) => string | undefined;
  /** Without one the handshake is the answer. */
  readonly question?: { readonly pair: ServingPair; readonly field: string };
};

/** A socket of its own, closed at the first word. */
function asked({ address, clock, word, question }: Asked): Promise<Word> {
  const backend = address.name;
  return new Promise((resolve) => {
    const socket: Socket = openSocket(address, "http/1.1", question?.pair);
    const end = (objection: string | undefined): void => {
      cancel();
      socket.destroy();
      resolve({ backend, objection });
    };
    const cancel = clock.after(limits.proofMs, () => end(undefined));
    // It stays: a socket without a listener for "error" would take the process down with it.
    socket.on("error", (reason) => end(word(reason)));
    socket.once("close", () => end(undefined));
    socket.once("secureConnect", () => {
      if (question === undefined) return end(word(""));
      const fields = [
        "Host: kubernetes",
        "User-Agent: watchkeeper-probe",
        question.field,
        "Connection: close",
      ];
      const lines = ["GET /readyz HTTP/1.1", ...fields.filter((field) => field !== ""), "", ""];
      socket.write(lines.join("\r\n"));
      // The status line comes in one piece from whoever speaks HTTP at all; anything else says nothing.
      socket.once("data", (chunk: Buffer) => end(word(firstLine(chunk))));
    });
  });
}

function firstLine(chunk: Buffer): string {
  return chunk.toString("latin1", 0, 80).split("\r\n")[0] ?? "";
}
