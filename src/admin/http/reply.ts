/** Types of a response and of routes, for both admin ports. */
export type Reply = {
  readonly status: number;
  readonly type: string;
  readonly text: string;
  /** Content-Security-Policy; default: nothing may be loaded. */
  readonly policy?: string;
  /** The target of a redirect. */
  readonly location?: string;
};

/** `query` is the text after the `?`. */
export type Route = (query: string) => Reply | Promise<Reply>;

/** A POST request: the operator's name and address, and a small JSON object. */
export type Posted = { readonly by: string; readonly body: Readonly<Record<string, unknown>> };

/** Runs an operation and returns its response. */
export type Post = (posted: Posted) => Reply | Promise<Reply>;

/** Returns undefined for a path without an operation. */
export type Posts = (path: string) => Post | undefined;

export function jsonReply(status: number, body: unknown): Reply {
  return { status, type: "application/json; charset=utf-8", text: `${JSON.stringify(body)}\n` };
}

/** An error response with its reason. */
export function failed(status: number, message: string): Reply {
  return jsonReply(status, { kind: "Failure", message });
}

/** Returns undefined for an unknown path. */
export type Routes = (path: string) => Route | undefined;
