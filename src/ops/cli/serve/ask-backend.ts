/** Checks that a backend's TLS can be verified, that it speaks HTTP/2 and that it is ready. Reads its version. */
import http2 from "node:http2";
import tls from "node:tls";
import { textOf } from "../../../base/address.ts";
import type { Clock } from "../../../base/clock.ts";
import { type Failure, failureFrom } from "../../../base/failure.ts";
import { type BackendAddress, openSocket } from "../../../upstream/net/connect.ts";

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
export function askBackend(
  address: BackendAddress,
  clock: Clock,
  withinMs: number,
): Promise<BackendAnswer | Failure> {
  const startedAt = clock.now();
  const url = `${address.tls === undefined ? "http" : "https"}://${textOf(address)}`;
  const session = http2.connect(url, { createConnection: () => openSocket(address, "h2") });
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
      const stream = session.request({ ":path": `${address.path ?? ""}/readyz` });
      stream.on("error", fail);
      stream.once("response", (head) => {
        const tookMs = clock.now() - startedAt;
        const answer = { status: Number(head[":status"]), tookMs, notAfter, version: "" };
        ready = answer;
        askVersion(session, `${address.path ?? ""}/version`, (version) => end({ ...answer, version }));
      });
      stream.resume();
    });
  });
}

function askVersion(
  session: http2.ClientHttp2Session,
  path: string,
  report: (version: string) => void,
): void {
  const stream = session.request({ ":path": path });
  let text = "";
  stream.setEncoding("utf8");
  stream.on("data", (more: string) => {
    text += more;
    if (text.length > versionBytes) stream.close();
  });
  stream.on("error", () => report(""));
  stream.once("close", () => report(/"gitVersion":\s*"(v\d+\.\d+[\w.+-]*)"/.exec(text)?.[1] ?? ""));
}
