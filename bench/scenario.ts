/** A scenario: one thing that is measured. Each is one file in scenarios/. */
import type { Proxy } from "./peer.ts";
import type { BackendKind, Rig } from "./rig.ts";

export type Metric = {
  readonly key: string;
  readonly title: string;
  readonly digits: number;
  /**
   * True if more is better, as for throughput. In either case, a ratio is watchkeeper's figure divided by the peer's.
   */
  readonly isGain?: boolean;
};

export type Figures = Readonly<Record<string, number>>;

export type Measuring = {
  readonly proxy: Proxy;
  readonly rig: Rig;
  /** True for short runs, which only show that the harness works. Their figures mean nothing. */
  readonly isQuick: boolean;
};

export type Scenario = {
  readonly name: string;
  readonly about: string;
  readonly backend: BackendKind;
  /**
   * "kept": one process for each peer through all rounds, warmed up first. "fresh": a new process for each measurement.
   */
  readonly proxies: "kept" | "fresh";
  /** True for a scenario in which the backend terminates TLS. Only peers that can forward TLS unopened take part. */
  readonly isPassthrough?: true;
  readonly metrics: readonly Metric[];
  measure(measuring: Measuring): Promise<Figures>;
};
