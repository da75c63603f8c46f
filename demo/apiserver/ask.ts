/** The interface between an embedded apiserver and its host: a server on a socket, a test, or the simulation. */
/** Maximum size of a request body, as in a real apiserver (k8s.io/apiserver pkg/server/config.go). */
export const bodyBytes = 3 * 1024 * 1024;

/**
 * A complete request. If its body is longer than `bodyBytes`, the host passes on only the beginning, which is slightly
 * longer than `bodyBytes`, so that the apiserver can reject the request.
 */
export type Ask = {
  readonly method: string;
  /** Path and query of the request, as received. */
  readonly path: string;
  readonly fields: readonly (readonly [string, string])[];
  readonly body: Buffer;
};

/**
 * The methods with which the apiserver sends its response. None may be called after `end()`, or after the client has
 * disconnected.
 */
export type Answer = {
  head(status: number, fields: readonly (readonly [string, string])[]): void;
  write(bytes: Buffer): void;
  end(): void;
  /** Returns the number of bytes that the client has not read yet. */
  queued(): number;
  /** Sets the one callback that runs if the client disconnects before `end()`. May be called only once. */
  onGone(run: () => void): void;
};
