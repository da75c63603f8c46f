import http from "node:http";
import https, { type RequestOptions } from "node:https";
import type { ConnectionOptions } from "node:tls";
import type { Clock } from "../base/clock.ts";
import { Failure, timeout } from "../base/failure.ts";
import { clientTls, trustAsGo } from "../x509/trust.ts";

export type BoundedOptions = RequestOptions & Pick<ConnectionOptions, "secureContext">;

export type Bounds = {
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly mostBytes: number;
  /**
   * Adds the size of a chunk to a total that several responses share. Returns false if the total is too large; default:
   * the total is not limited.
   */
  readonly count?: (bytes: number) => boolean;
};

export type BoundedResponse = { readonly status: number; readonly bytes: Buffer };

/**
 * Sends a GET, or a POST if there is a body, and returns the response. Follows no redirect. Uses plain HTTP if the
 * protocol of `options` is "http:". @throws {Error} as a rejected promise, if the response is too large, comes too late
 * or switches protocols, or if the connection fails
 */
export async function boundedRequest(
  options: BoundedOptions,
  body: string | undefined,
  { clock, timeoutMs, mostBytes, count }: Bounds,
): Promise<BoundedResponse> {
  const { promise, resolve, reject } = Promise.withResolvers<BoundedResponse>();
  const { request: open } = options.protocol === "http:" ? http : https;
  // Only the options can turn verification off, as `insecure-skip-tls-verify` in a kubeconfig does. Without
  // `rejectUnauthorized`, the environment variable NODE_TLS_REJECT_UNAUTHORIZED=0 would turn it off, too.
  const request = open({
    ...clientTls,
    ...options,
    method: body === undefined ? "GET" : "POST",
  });
  // Rejects the promise before it destroys the request, because a request that is destroyed after an upgrade, or after
  // the end of the response, reports no error.
  const fail = (reason: unknown): void => {
    reject(reason);
    request.destroy();
  };
  const stopTimer = clock.after(timeoutMs, () => fail(timeout(`no answer in ${timeoutMs} ms`)));
  request.on("error", reject);
  request.once("socket", (socket) => trustAsGo(socket, options.ca?.toString()));
  request.once("upgrade", (_response, socket) => {
    socket.destroy();
    fail(new Error("answered 101"));
  });
  request.once("response", (response) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    response.on("error", reject);
    response.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      chunks.push(chunk);
      if (bytes > mostBytes) fail(new Error(`an answer of more than ${mostBytes} bytes`));
      else if (count?.(chunk.length) === false)
        fail(new Failure("overload", "proxy", "Too many responses are being forwarded"));
    });
    response.once("end", () => resolve({ status: response.statusCode ?? 0, bytes: Buffer.concat(chunks) }));
  });
  request.end(body);
  return promise.finally(stopTimer);
}
