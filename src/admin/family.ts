/** What one metric family of ours is. */
import type { Snapshot } from "./metrics.ts";
import type { Row } from "./series.ts";
import type { Tally } from "./tally.ts";

export type Family = {
  readonly type: "gauge" | "counter";
  /** Behind `watchkeeper_`. */
  readonly name: string;
  readonly help: string;
  readonly labels: readonly string[];
  /** Series that it may have; `limits.familySeries` unless said otherwise. */
  readonly cap?: number;
  readonly rows: (now: Snapshot, told: Tally) => readonly Row[];
};
