/**
 * One question to an apiserver as a pod may ask it: with the service account's token, on a new socket each time, so that
 * one that hangs holds up nothing that comes later. No package for it: a sidecar has no room.
 */
import { readFileSync } from "node:fs";
import https from "node:https";
import tls from "node:tls";
import { isIpAddress } from "../base/address.ts";
import { wallClock } from "../base/clock.ts";
import { Failure, timeout } from "../base/failure.ts";
import { limits } from "../base/limits.ts";
import { readText } from "../base/read-text.ts";
import { discoveryLimits } from "./limits.ts";

/** Where the kubelet, or our sidecar, puts token and CA (client-go's rest.InClusterConfig). */
export const accountDirectory = "/var/run/secrets/kubernetes.io/serviceaccount";

/** Read anew each time: the kubelet rotates it. */
export function accountToken(directory: string): string | Failure {
  const token = readText(`${directory}/token`, limits.tokenBytes);
  if (token instanceof Failure)
    return new Failure("bad-file", "proxy", `The service account's token ${token.message}`);
  return token.trim();
}

/** As every client in a pod puts it together; the kubelet sets both in every container. */
export function serviceUrl({ env } = process): string {
  const host = env["KUBERNETES_SERVICE_HOST"] ?? "kubernetes.default.svc";
  return `https://${host.includes(":") ? `[${host}]` : host}:${env["KUBERNETES_SERVICE_PORT"] ?? "443"}`;
}

export type AccountAsk = {
  readonly access: { readonly caFile: string; readonly serverName: string | undefined };
  readonly token: string;
  readonly signal: AbortSignal;
  /** JSON, which is posted; left out: it is a GET. */
  readonly body?: string;
  /** Until the answer begins and ends; `discoveryLimits.discoveryAskMs` where it is left out. */
  readonly patienceMs?: number;
};

/**
 * The body of a 2xx, or a Failure with the code.
 * @throws {Error} a promise rejected with Node's own: nobody is there, TLS does not hold, or the time is over
 */
export function requestAsAccount(url: string, ask: AccountAsk): Promise<string | Failure> {
  const { access, token, signal, body, patienceMs = discoveryLimits.discoveryAskMs } = ask;
  const { hostname } = new URL(url);
  const serverName = access.serverName ?? hostname.replace(/^\[(.*)\]$/, "$1");
  const sent = body === undefined ? {} : { "content-type": "application/json" };
  return new Promise((resolve, reject) => {
    const request = https.request(url, {
      method: body === undefined ? "GET" : "POST",
      agent: false,
      ca: readFileSync(access.caFile),
      minVersion: "TLSv1.2",
      // An IP address is no SNI name (RFC 6066 §3), but the certificate is checked against it all the same.
      servername: isIpAddress(serverName) ? "" : serverName,
      checkServerIdentity: (_name, certificate) => tls.checkServerIdentity(serverName, certificate),
      headers: { authorization: `Bearer ${token}`, accept: "application/json", ...sent },
      signal,
    });
    const stopTimer = wallClock.after(patienceMs, () =>
      request.destroy(timeout(`no answer in ${patienceMs} ms`)),
    );
    request.once("close", stopTimer);
    request.once("error", reject);
    request.once("response", (response) => {
      const { statusCode = 0 } = response;
      if (statusCode < 200 || statusCode > 299) {
        resolve(new Failure("bad-file", "proxy", `answered ${statusCode}`));
        request.destroy();
        return;
      }
      let text = "";
      response.setEncoding("utf8");
      response.on("error", reject);
      response.on("data", (chunk: string) => {
        text += chunk;
        if (text.length > discoveryLimits.discoveryBytes)
          request.destroy(new Error("answered with too much"));
      });
      response.once("end", () => resolve(text));
    });
    request.end(body);
  });
}
