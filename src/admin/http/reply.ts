/** What a port of ours answers, and to whom it turns. */
export type Reply = {
  readonly status: number;
  readonly type: string;
  readonly text: string;
  /** What a browser may load and ask for the sake of it (CSP); nothing at all where it is not said. */
  readonly policy?: string;
  /** Where it is instead, of a redirection. */
  readonly location?: string;
};

/** `query` is what stands behind the `?`. */
export type Route = (query: string) => Reply | Promise<Reply>;

/** What is asked for with POST: who asks, as they call themselves and from where, and a small JSON object. */
export type Posted = { readonly by: string; readonly body: Readonly<Record<string, unknown>> };

/** Does something, and answers. */
export type Post = (posted: Posted) => Reply | Promise<Reply>;

/** Undefined for a path at which nothing can be done. */
export type Posts = (path: string) => Post | undefined;

export function jsonReply(status: number, body: unknown): Reply {
  return { status, type: "application/json; charset=utf-8", text: `${JSON.stringify(body)}\n` };
}

/** An answer that is none, with the reason. */
export function failed(status: number, message: string): Reply {
  return jsonReply(status, { kind: "Failure", message });
}

/** Undefined for a path that there is not. */
export type Routes = (path: string) => Route | undefined;
