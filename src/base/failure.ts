/**
 * Which side caused a failure. This determines the response that the client gets, and whether the failure counts
 * against the backend.
 */
export type Origin = "client" | "proxy" | "backend";

export type FailureCode =
  | "bad-request"
  | "client-certificate"
  | "unauthenticated"
  | "misdirected"
  | "no-backend"
  | "unproven-identity"
  | "backend-lost"
  | "backend-refused"
  | "backend-protocol"
  | "client-lost"
  | "overload"
  | "limited"
  | "outcome-unknown"
  | "draining"
  | "bad-file";

/** The reason why a request failed or a file was rejected. A function returns a Failure and never throws it. */
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

const unreachedCodes = new Set(["ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH", "ENOTFOUND", "EADDRNOTAVAIL"]);

/** Node's error codes for a shortage of the proxy's own descriptors or memory, which is no evidence against a peer. */
const shortageCodes = new Set(["EMFILE", "ENFILE", "ENOMEM", "ENOBUFS"]);

export function isShortage(reason: unknown): boolean {
  return reason instanceof Error && "code" in reason && shortageCodes.has(String(reason.code));
}

/** Converts a caught value to a Failure, whose message contains no stack trace. */
export function failureFrom(reason: unknown, origin: Origin): Failure {
  const code = reason instanceof Error && "code" in reason ? String(reason.code) : "";
  const message = messageOf(reason);
  if (isShortage(reason)) return new Failure("backend-refused", "proxy", message, reason);
  if (origin === "client") return new Failure("client-lost", origin, message, reason);
  return new Failure(unreachedCodes.has(code) ? "backend-refused" : "backend-lost", origin, message, reason);
}

export function wordsOf(reason: unknown): string {
  return reason instanceof Error ? reason.message : String(reason);
}

/** Returns the message of any thrown value. The full message of an OpenSSL error names OpenSSL's source files. */
function messageOf(reason: unknown): string {
  if (!(reason instanceof Error)) return String(reason);
  return "library" in reason && "reason" in reason ? `TLS: ${String(reason.reason)}` : reason.message;
}

const bindProblems: Readonly<Record<string, string>> = {
  EADDRINUSE: "already in use",
  EACCES: "permission denied",
  EADDRNOTAVAIL: "not an address of this machine",
};

/** Returns the failure of a listener that cannot be opened. `at`: its address as the operator wrote it. */
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

/** True for a Failure of `cannotListen` whose reason is that another process uses the port. */
export function isPortTaken({ cause }: Failure): boolean {
  return cause instanceof Error && "code" in cause && cause.code === "EADDRINUSE";
}

/**
 * How a dial ended. answer: TLS is established. refusal: only the backend's kernel answers, or TLS fails. silence: no
 * answer. untrusted: the backend's certificate was rejected.
 */
export type Met = "answer" | "refusal" | "silence" | "untrusted";

const unansweredCodes = new Set(["ETIMEDOUT", "EHOSTUNREACH", "EHOSTDOWN", "ENETUNREACH"]);

const rejectedCertificateCodes =
  /^(ERR_TLS_CERT_|CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|INVALID_CA|INVALID_PURPOSE|HOSTNAME_MISMATCH)/;

/** Returns how a failed dial ended. `reason`: Node's error, or a Failure whose cause is Node's error. */
export function metOf(reason: unknown): Exclude<Met, "answer"> {
  const cause = reason instanceof Failure ? reason.cause : reason;
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
  if (unansweredCodes.has(code)) return "silence";
  return rejectedCertificateCodes.test(code) ? "untrusted" : "refusal";
}

/** Returns an error for a deadline that the proxy itself sets, with the code of the kernel's own timeout. */
export function timeout(message: string): Error {
  return Object.assign(new Error(message), { code: "ETIMEDOUT" });
}
