/** Who caused it: decides whose health is charged and what the client is told. */
export type Origin = "client" | "proxy" | "backend";

/** The closed list of reasons for which an exchange ends early, or a file is not taken into use. */
export type FailureCode =
  | "bad-request"
  | "client-certificate"
  | "unauthenticated"
  | "misdirected"
  | "no-backend"
  | "backend-lost"
  | "backend-refused"
  | "backend-protocol"
  | "client-lost"
  | "overload"
  | "outcome-unknown"
  | "draining"
  | "bad-file";

/** Anything that ends an exchange early. Returned, never thrown: callers test `instanceof Failure`. */
export class Failure {
  readonly code: FailureCode;
  readonly origin: Origin;
  readonly message: string;
  readonly cause: unknown;

  constructor(code: FailureCode, origin: Origin, message: string, cause?: unknown) {
    this.code = code;
    this.origin = origin;
    this.message = message;
    this.cause = cause;
  }
}

/** Node's error codes that say that nothing reached the backend. */
const refusals = new Set(["ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH", "ENOTFOUND", "EADDRNOTAVAIL"]);

/** Node's codes for what this process or its machine has run out of: whoever it was meant for knows nothing of it. */
const shortages = new Set(["EMFILE", "ENFILE", "ENOMEM", "ENOBUFS"]);

/** Did it fail for want of descriptors or memory of our own? */
export function isShortage(reason: unknown): boolean {
  return reason instanceof Error && "code" in reason && shortages.has(String(reason.code));
}

/** The one place where a caught value becomes a Failure: the message keeps Node's code, never its stack. */
export function failureFrom(reason: unknown, origin: Origin): Failure {
  const code = reason instanceof Error && "code" in reason ? String(reason.code) : "";
  const message = messageOf(reason);
  if (isShortage(reason)) return new Failure("backend-refused", "proxy", message, reason);
  if (origin === "client") return new Failure("client-lost", origin, message, reason);
  return new Failure(refusals.has(code) ? "backend-refused" : "backend-lost", origin, message, reason);
}

/** What was thrown, in its own words, whatever it is. */
export function wordsOf(reason: unknown): string {
  return reason instanceof Error ? reason.message : String(reason);
}

/** OpenSSL's errors have a sentence of their own; the rest of their message is addresses and file names. */
function messageOf(reason: unknown): string {
  if (!(reason instanceof Error)) return String(reason);
  return "library" in reason && "reason" in reason ? `TLS: ${String(reason.reason)}` : reason.message;
}

/** Node's codes for a port that cannot be had, in words. */
const bindProblems: Readonly<Record<string, string>> = {
  EADDRINUSE: "already in use",
  EACCES: "not allowed to this user",
  EADDRNOTAVAIL: "no address of this machine",
};

/** A listener that cannot be opened; `at` is its address as the operator wrote it. */
export function cannotListen(listener: string, at: string, reason: unknown): Failure {
  const code = reason instanceof Error && "code" in reason ? String(reason.code) : "";
  const problem = bindProblems[code] ?? messageOf(reason);
  return new Failure(
    "bad-request",
    "proxy",
    `listener ${listener}: cannot listen on ${at}: ${problem}`,
    reason,
  );
}

/** Did `cannotListen` say so because somebody else has the port? */
export function isPortTaken({ cause }: Failure): boolean {
  return cause instanceof Error && "code" in cause && cause.code === "EADDRINUSE";
}

/** What a fresh socket met: TCP and TLS. A refusal is the answer of a living kernel to a dead process. */
export type Met = "answer" | "refusal" | "silence" | "untrusted";

/** Node's codes for nobody saying anything. */
const silences = new Set(["ETIMEDOUT", "EHOSTUNREACH", "EHOSTDOWN", "ENETUNREACH"]);

/** OpenSSL's and Node's verdicts on a certificate: another name, another authority, out of date. */
const distrusts =
  /^(ERR_TLS_CERT_|CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|INVALID_CA|INVALID_PURPOSE|HOSTNAME_MISMATCH)/;

/** What a dial that failed for this reason, or for this Failure's cause, has met. */
export function metOf(reason: unknown): Exclude<Met, "answer"> {
  const cause = reason instanceof Failure ? reason.cause : reason;
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
  if (silences.has(code)) return "silence";
  return distrusts.test(code) ? "untrusted" : "refusal";
}

/** What Node says when the kernel gives up, said by us when we do. */
export function timeout(message: string): Error {
  return Object.assign(new Error(message), { code: "ETIMEDOUT" });
}
