/** The narrow waist between an embedded apiserver and whatever carries its requests: a session, a test, a simulation. */

/** A whole request. The host stops collecting a body beyond `demoLimits.bodyBytes`: what it passes on is refused. */
export type Ask = {
  readonly method: string;
  /** With its query, as it came. */
  readonly path: string;
  readonly fields: readonly (readonly [string, string])[];
  readonly body: Buffer;
};

/** Where the answer goes. After `end()`, or once the asker is gone, nothing more is written. */
export type Answer = {
  head(status: number, fields: readonly (readonly [string, string])[]): void;
  write(bytes: Buffer): void;
  end(): void;
  /** Bytes written but not yet taken by the asker. */
  queued(): number;
  /** At most one: runs when the asker is gone before the end. */
  onGone(run: () => void): void;
};
