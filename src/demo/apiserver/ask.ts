/** The interface between an embedded apiserver and its transport: a session, a test, or the simulation. */
/** Maximum size of a body, the same as a real apiserver's (k8s.io/apiserver pkg/server/config.go). */
export const bodyBytes = 3 * 1024 * 1024;

/** A complete request, except that the host drops what exceeds `bodyBytes`; the apiserver then rejects it. */
export type Ask = {
  readonly method: string;
  /** Path and query, as received. */
  readonly path: string;
  readonly fields: readonly (readonly [string, string])[];
  readonly body: Buffer;
};

/** Takes the response. Nothing is written after `end()`, or once the client has disconnected. */
export type Answer = {
  head(status: number, fields: readonly (readonly [string, string])[]): void;
  write(bytes: Buffer): void;
  end(): void;
  /** Returns the number of bytes that the client has not read yet. */
  queued(): number;
  /** Sets the only callback, which runs if the client disconnects before the end. */
  onGone(run: () => void): void;
};
