import type { OutgoingHttpHeaders } from "node:http";
import type { RequestOptions } from "node:https";
import { urlToHttpOptions } from "node:url";
import { wallClock } from "../base/clock.ts";
import { parseJson } from "../base/json.ts";
import { boundedRequest } from "./bounded-request.ts";
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
export async function jsonFrom(
  server: string,
  { headers = {}, ...options }: JsonOptions,
  { path, body, timeoutMs }: ApiRequest,
): Promise<unknown> {
  const sent = body === undefined ? {} : { "content-type": "application/json" };
  const { status, bytes } = await boundedRequest(
    {
      // Uses plain HTTP for an http: URL. Only a kubeconfig may contain one.
      ...urlToHttpOptions(new URL(`${server}${path}`)),
      ...options,
      headers: { ...headers, accept: "application/json", ...sent },
    },
    body && JSON.stringify(body),
    { clock: wallClock, timeoutMs, mostBytes: discoveryLimits.discoveryBytes },
  );
  if (status < 200 || status > 299) throw new Error(`answered ${status}`);
  const answer = parseJson(bytes.toString());
  if (answer === undefined) throw new Error("the response is not JSON");
  return answer;
}
