/** The interface between an embedded apiserver and its transport: a session, a test, or the simulation. */

/** The longest body, the same as a real apiserver's (k8s.io/apiserver pkg/server/config.go). */
export const bodyBytes = 3 * 1024 * 1024;

/** A complete request. The host stops collecting a body beyond `bodyBytes`, and the apiserver rejects such a request. */
export type Ask = {
  readonly method: string;
  /** With its query, as it arrived. */
  readonly path: string;
  readonly fields: readonly (readonly [string, string])[];
  readonly body: Buffer;
};

/** Receives the response. After `end()`, or once the client is gone, nothing more is written. */
export type Answer = {
  head(status: number, fields: readonly (readonly [string, string])[]): void;
  write(bytes: Buffer): void;
  end(): void;
  /** Bytes written but not yet taken by the client. */
  queued(): number;
  /** At most one callback: runs if the client is gone before the end. */
  onGone(run: () => void): void;
};
