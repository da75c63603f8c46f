/** What a port of ours answers, and to whom it turns. */
export type Reply = {
  readonly status: number;
  readonly type: string;
  readonly text: string;
  /** What a browser may load and ask for the sake of it (CSP); nothing at all where it is not said. */
  readonly policy?: string;
};

/** `query` is what stands behind the `?`. */
export type Route = (query: string) => Reply | Promise<Reply>;

/** Undefined for a path that there is not. */
export type Routes = (path: string) => Route | undefined;
