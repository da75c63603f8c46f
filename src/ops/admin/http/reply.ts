/** Responses and routes of both admin ports. */
import type { IncomingHttpHeaders } from "node:http";

export type Reply = {
  readonly status: number;
  readonly type: string;
  /** The body; a Buffer if it is another replica's response, which is passed on as received. */
  readonly text: string | Buffer;
  /** Content-Security-Policy of the response; default: one that allows a page to load nothing. */
  readonly policy?: string;
  /** Value of the response's Location field; default: no such field. */
  readonly location?: string;
};

/** Answers a GET request. `query` is the text after the `?`, `headers` the request's header fields; default: none. */
export type Route = (query: string, headers?: IncomingHttpHeaders) => Reply | Promise<Reply>;

/** A POST request. `by` is the operator's name and address. */
export type Posted = {
  readonly by: string;
  readonly body: Readonly<Record<string, unknown>>;
  /** The request's header fields; default: none. */
  readonly headers?: IncomingHttpHeaders;
};

export type Post = (posted: Posted) => Reply | Promise<Reply>;

export type Posts = (path: string) => Post | undefined;

export function jsonReply(status: number, body: unknown): Reply {
  return { status, type: "application/json; charset=utf-8", text: `${JSON.stringify(body)}\n` };
}

export function failed(status: number, message: string): Reply {
  return jsonReply(status, { kind: "Failure", message });
}

export type Routes = (path: string) => Route | undefined;
