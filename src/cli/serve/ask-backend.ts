/** Checks that a backend's TLS can be verified, that it speaks HTTP/2 and that it is ready. Reads its version. */
import http2 from "node:http2";
import { isIP, type Socket } from "node:net";
import tls from "node:tls";
import type { Clock } from "../../base/clock.ts";
import type { Failure } from "../../base/failure.ts";
import { failureFrom } from "../../base/failure.ts";
import type { BackendConfig } from "../../config/cluster.ts";
import { type BackendAddress, openSocket } from "../../proxy/net/connect.ts";

export type BackendQuestion = {
  readonly backend: BackendConfig;
  /** CA bundle in PEM that verifies the backend; undefined for a backend without TLS. */
  readonly ca: string | undefined;
  readonly serverName: string | undefined;
  /** Path of the file that contains `ca`, for error messages. */
  readonly caFile?: string | undefined;
  /** Version of the PROXY protocol header to send; undefined: none. */
  readonly proxyProtocol?: "V1" | "V2" | undefined;
  readonly clock: Clock;
  readonly withinMs: number;
};

export type BackendAnswer = {
  readonly status: number;
  readonly tookMs: number;
  /** Expiry of the backend's certificate in milliseconds since 1970; undefined without TLS. */
  readonly notAfter: number | undefined;
  /** `gitVersion` of the backend; "" if an anonymous client may not read it or gets no answer. */
  readonly version: string;
};

const versionBytes = 4096;

/**
 * Sends GET /readyz, which apiservers answer for anonymous clients. Returns a Failure if there is no answer within
 * `withinMs`. Then sends GET /version. If only /version gets no answer, the version is "".
 */
export function askBackend(question: BackendQuestion): Promise<BackendAnswer | Failure> {
  const { backend, clock, withinMs } = question;
  const startedAt = clock.now();
  const session = http2.connect(urlOf(backend), { createConnection: () => openedFor(question) });
  return new Promise((resolve) => {
    let notAfter: number | undefined;
    const end = (outcome: BackendAnswer | Failure): void => {
      cancel();
      session.destroy();
      resolve(outcome);
    };
    let ready: BackendAnswer | undefined;
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

function askVersion(session: http2.ClientHttp2Session, report: (version: string) => void): void {
  const stream = session.request({ ":path": "/version" });
  let text = "";
  stream.setEncoding("utf8");
  stream.on("data", (more: string) => {
    text += more;
    if (text.length > versionBytes) stream.close();
  });
  stream.on("error", () => report(""));
  stream.once("close", () => report(/"gitVersion":\s*"(v\d+\.\d+[\w.+-]*)"/.exec(text)?.[1] ?? ""));
}

function urlOf({ host, port, isEncrypted }: BackendConfig): string {
  const bracketed = isIP(host) === 6 ? `[${host}]` : host;
  return `${isEncrypted ? "https" : "http"}://${bracketed}:${port}`;
}

/** Opens a socket to the backend with the same settings as an upstream connection. */
function openedFor({ backend, ca, caFile, serverName, proxyProtocol }: BackendQuestion): Socket {
  const source = caFile === undefined ? undefined : { caFile, isNamed: serverName !== undefined };
  const tlsOf: BackendAddress["tls"] = backend.isEncrypted
    ? { ca, serverName: serverName ?? backend.host, source }
    : undefined;
  return openSocket({ ...backend, tls: tlsOf, proxyProtocol }, "h2");
}
