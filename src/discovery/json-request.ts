import http, { type OutgoingHttpHeaders } from "node:http";
import https, { type RequestOptions } from "node:https";
import { wallClock } from "../base/clock.ts";
import { timeout } from "../base/failure.ts";
import { discoveryLimits } from "./limits.ts";

export type ApiRequest = {
  readonly path: string;
  /** The body of a POST; default: the request is a GET. */
  readonly body?: object;
  readonly timeoutMs: number;
};

export type JsonOptions = Omit<RequestOptions, "headers"> & { headers?: OutgoingHttpHeaders };

/**
 * Sends a request on a new socket, and returns the parsed body of a 2xx response. @throws {Error} as a rejected
 * promise, for another status, a body that is too large or not JSON, a timeout, or a connection error
 */
export function jsonFrom(
  server: string,
  { headers = {}, ...options }: JsonOptions,
  { path, body, timeoutMs }: ApiRequest,
): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const sent = body === undefined ? {} : { "content-type": "application/json" };
    // Uses plain HTTP for an http: URL. Only a kubeconfig may contain one.
    const { request: open } = server.startsWith("http:") ? http : https;
    const request = open(`${server}${path}`, {
      ...options,
      method: body === undefined ? "GET" : "POST",
      headers: { ...headers, accept: "application/json", ...sent },
    });
    const stopTimer = wallClock.after(timeoutMs, () =>
      request.destroy(timeout(`no answer in ${timeoutMs} ms`)),
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
          request.destroy(new Error("the response is too large"));
      });
      response.once("end", () => {
        try {
          resolve(JSON.parse(text));
        } catch {
          reject(new Error("the response is not JSON"));
        }
      });
    });
    request.end(body && JSON.stringify(body));
  });
}
