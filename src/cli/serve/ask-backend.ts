/**
 * Asks one backend, over a socket of its own, what an upstream connection would need of it: TLS that verifies, HTTP/2, readiness; and which
 * version it is.
 */
import http2 from "node:http2";
import { isIP, type Socket } from "node:net";
import tls from "node:tls";
import type { Clock } from "../../base/clock.ts";
import type { Failure } from "../../base/failure.ts";
import { failureFrom } from "../../base/failure.ts";
import type { BackendConfig } from "../../config/cluster.ts";
import { openSocket } from "../../proxy/net/connect.ts";

export type Question = {
  readonly backend: BackendConfig;
  /** PEM; not needed for a plain backend. */
  readonly ca: string | undefined;
  readonly serverName: string | undefined;
  /** Where `ca` was read, for what is said when it does not fit. */
  readonly caFile?: string | undefined;
  /** Which PROXY header it asks for; left out: none. */
  readonly proxyProtocol?: "V1" | "V2" | undefined;
  readonly clock: Clock;
  readonly withinMs: number;
};

export type Answer = {
  readonly status: number;
  readonly tookMs: number;
  /** When the backend's certificate expires, in milliseconds since 1970; undefined without TLS. */
  readonly notAfter: number | undefined;
  /** Its `gitVersion`; "" when it does not say, or not to us. */
  readonly version: string;
};

const versionBytes = 4096;

/**
 * GET /readyz, which the apiserver answers to anyone; a black hole is a Failure after `withinMs`. Then GET /version, which
 * need not be answered.
 */
export function askBackend(question: Question): Promise<Answer | Failure> {
  const { backend, clock, withinMs } = question;
  const startedAt = clock.now();
  const session = http2.connect(urlOf(backend), { createConnection: () => openedFor(question) });
  return new Promise((resolve) => {
    let notAfter: number | undefined;
    const end = (outcome: Answer | Failure): void => {
      cancel();
      session.destroy();
      resolve(outcome);
    };
    let ready: Answer | undefined;
    const fail = (reason: unknown): void => end(ready ?? failureFrom(reason, "backend"));
    const cancel = clock.after(withinMs, () => fail(new Error(`No answer within ${withinMs / 1000} s`)));
    session.on("error", fail);
    session.once("close", () => fail(new Error("The backend closed the socket")));
    session.once("connect", (_session, socket) => {
      if (socket instanceof tls.TLSSocket) notAfter = socket.getPeerX509Certificate()?.validToDate.getTime();
      const stream = session.request({ ":path": "/readyz" });
      stream.on("error", fail);
      stream.once("response", (head) => {
        const tookMs = clock.now() - startedAt;
        const answer = { status: Number(head[":status"]), tookMs, notAfter, version: "" };
        ready = answer;
        askVersion(session, (version) => end({ ...answer, version }));
      });
      stream.resume();
    });
  });
}

function askVersion(session: http2.ClientHttp2Session, tell: (version: string) => void): void {
  const stream = session.request({ ":path": "/version" });
  let text = "";
  stream.setEncoding("utf8");
  stream.on("data", (more: string) => {
    text += more;
    if (text.length > versionBytes) stream.close();
  });
  stream.on("error", () => tell(""));
  stream.once("close", () => tell(/"gitVersion":\s*"(v\d+\.\d+[\w.+-]*)"/.exec(text)?.[1] ?? ""));
}

function urlOf({ host, port, isEncrypted }: BackendConfig): string {
  const bracketed = isIP(host) === 6 ? `[${host}]` : host;
  return `${isEncrypted ? "https" : "http"}://${bracketed}:${port}`;
}

/** Opened as an upstream connection would be. */
function openedFor({ backend, ca, caFile, serverName, proxyProtocol }: Question): Socket {
  const told = caFile === undefined ? undefined : { caFile, isNamed: serverName !== undefined };
  const tlsOf = backend.isEncrypted ? { ca, serverName: serverName ?? backend.host, told } : undefined;
  return openSocket({ ...backend, tls: tlsOf, proxyProtocol }, "h2");
}
