/** The party that caused a failure. It decides which health is affected and the answer to the client. */
export type Origin = "client" | "proxy" | "backend";

/** The closed list of reasons why an exchange ends early or a file is rejected. */
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

/** A reason why an exchange ends early. Failures are returned, never thrown: callers test `instanceof Failure`. */
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

/** Node's error codes for connections that never reached the backend. */
const refusals = new Set(["ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH", "ENOTFOUND", "EADDRNOTAVAIL"]);

/** Node's error codes for exhausted resources of this process or machine. They say nothing about the peer. */
const shortages = new Set(["EMFILE", "ENFILE", "ENOMEM", "ENOBUFS"]);

/** True if the cause is a shortage of file descriptors or memory on our side. */
export function isShortage(reason: unknown): boolean {
  return reason instanceof Error && "code" in reason && shortages.has(String(reason.code));
}

/** The only place where a caught value becomes a Failure. The message keeps Node's code but never its stack. */
export function failureFrom(reason: unknown, origin: Origin): Failure {
  const code = reason instanceof Error && "code" in reason ? String(reason.code) : "";
  const message = messageOf(reason);
  if (isShortage(reason)) return new Failure("backend-refused", "proxy", message, reason);
  if (origin === "client") return new Failure("client-lost", origin, message, reason);
  return new Failure(refusals.has(code) ? "backend-refused" : "backend-lost", origin, message, reason);
}

/** Returns the message of any thrown value. */
export function wordsOf(reason: unknown): string {
  return reason instanceof Error ? reason.message : String(reason);
}

/** Returns OpenSSL's own reason; the rest of its message is addresses and file names. */
function messageOf(reason: unknown): string {
  if (!(reason instanceof Error)) return String(reason);
  return "library" in reason && "reason" in reason ? `TLS: ${String(reason.reason)}` : reason.message;
}

/** Node's codes for a port that cannot be bound, in words. */
const bindProblems: Readonly<Record<string, string>> = {
  EADDRINUSE: "already in use",
  EACCES: "not allowed to this user",
  EADDRNOTAVAIL: "no address of this machine",
};

/** The failure of a listener that cannot be opened; `at` is its address as the operator wrote it. */
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

/** True if `cannotListen` failed because another process holds the port. */
export function isPortTaken({ cause }: Failure): boolean {
  return cause instanceof Error && "code" in cause && cause.code === "EADDRINUSE";
}

/** The result of a fresh socket's TCP and TLS. A refusal means that the kernel is alive and the process is not. */
export type Met = "answer" | "refusal" | "silence" | "untrusted";

/** Node's error codes for a peer that did not answer. */
const silences = new Set(["ETIMEDOUT", "EHOSTUNREACH", "EHOSTDOWN", "ENETUNREACH"]);

/** OpenSSL's and Node's certificate errors: wrong name, unknown CA, out of date. */
const distrusts =
  /^(ERR_TLS_CERT_|CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|INVALID_CA|INVALID_PURPOSE|HOSTNAME_MISMATCH)/;

/** Returns what a dial met that failed with this reason, or with this Failure's cause. */
export function metOf(reason: unknown): Exclude<Met, "answer"> {
  const cause = reason instanceof Failure ? reason.cause : reason;
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
  if (silences.has(code)) return "silence";
  return distrusts.test(code) ? "untrusted" : "refusal";
}

/** An error like Node's own for a kernel timeout, for our own deadlines. */
export function timeout(message: string): Error {
  return Object.assign(new Error(message), { code: "ETIMEDOUT" });
}
