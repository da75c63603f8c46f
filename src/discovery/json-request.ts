/** One request to an apiserver, on a new socket, with JSON both ways. */
import http, { type OutgoingHttpHeaders } from "node:http";
import https, { type RequestOptions } from "node:https";
import { wallClock } from "../base/clock.ts";
import { timeout } from "../base/failure.ts";
import { discoveryLimits } from "./limits.ts";

export type ApiRequest = {
  /** With its query. */
  readonly path: string;
  /** Sent with POST; default: none, and the request is a GET. */
  readonly body?: object;
  /** Time for the whole response. */
  readonly patienceMs: number;
};

export type JsonOptions = Omit<RequestOptions, "headers"> & { headers?: OutgoingHttpHeaders };

/**
 * Returns the body of a 2xx.
 * @throws {Error} a rejected promise: any other status, no JSON, too much of it, a timeout, or Node's own error
 */
export function jsonFrom(
  server: string,
  { headers = {}, ...options }: JsonOptions,
  { path, body, patienceMs }: ApiRequest,
): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const sent = body === undefined ? {} : { "content-type": "application/json" };
    // Only a kubeconfig that skips verification may have such a server.
    const { request: open } = server.startsWith("http:") ? http : https;
    const request = open(`${server}${path}`, {
      ...options,
      method: body === undefined ? "GET" : "POST",
      headers: { ...headers, accept: "application/json", ...sent },
    });
    const stopTimer = wallClock.after(patienceMs, () =>
      request.destroy(timeout(`no answer in ${patienceMs} ms`)),
    );
    request.once("close", stopTimer);
    request.once("error", reject);
    request.once("response", (response) => {
      const { statusCode = 0 } = response;
      if (statusCode < 200 || statusCode > 299) {
        request.destroy(new Error(`answered ${statusCode}`));
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
      response.once("end", () => {
        try {
          resolve(JSON.parse(text));
        } catch {
          reject(new Error("answered with no JSON"));
        }
      });
    });
    request.end(body && JSON.stringify(body));
  });
}
