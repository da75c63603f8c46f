/**
 * One request to an apiserver as a pod: with the service account's token, on a new socket each time, so that a hanging
 * one does not block later ones. It uses no package, because a sidecar must stay small.
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

/** Where the kubelet, or our sidecar, puts the token and the CA (client-go's rest.InClusterConfig). */
export const accountDirectory = "/var/run/secrets/kubernetes.io/serviceaccount";

/** Read for each request, because the kubelet rotates it. */
export function accountToken(directory: string): string | Failure {
  const token = readText(`${directory}/token`, limits.tokenBytes);
  if (token instanceof Failure)
    return new Failure("bad-file", "proxy", `The service account's token ${token.message}`);
  return token.trim();
}

/** Built as every in-cluster client does; the kubelet sets both variables in every container. */
export function serviceUrl({ env } = process): string {
  const host = env["KUBERNETES_SERVICE_HOST"] ?? "kubernetes.default.svc";
  return `https://${host.includes(":") ? `[${host}]` : host}:${env["KUBERNETES_SERVICE_PORT"] ?? "443"}`;
}

export type AccountAsk = {
  readonly access: { readonly caFile: string; readonly serverName: string | undefined };
  readonly token: string;
  readonly signal: AbortSignal;
  /** JSON, sent with POST; default: none, and the request is a GET. */
  readonly body?: string;
  /** Time for the whole response; default: `discoveryLimits.discoveryAskMs`. */
  readonly patienceMs?: number;
};

/**
 * Returns the body of a 2xx, or a Failure with the status code.
 * @throws {Error} a promise rejected with Node's error: connection refused, TLS verification failed, or timeout
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
      // An IP address is not allowed as SNI (RFC 6066 §3), but the certificate is verified against it anyway.
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
