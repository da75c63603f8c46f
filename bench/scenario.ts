/** A scenario: one thing that is measured. Each is one file in scenarios/. */
import type { Proxy } from "./peer.ts";
import type { BackendKind, Rig } from "./rig.ts";

export type Metric = {
  readonly key: string;
  readonly title: string;
  readonly digits: number;
  /** True where more is better: throughput. Ratios are ours / peer either way. */
  readonly isGain?: boolean;
};

export type Figures = Readonly<Record<string, number>>;

export type Measuring = {
  readonly proxy: Proxy;
  readonly rig: Rig;
  /** Short runs that prove the harness; their figures are noise. */
  readonly isQuick: boolean;
};

export type Scenario = {
  readonly name: string;
  readonly about: string;
  readonly backend: BackendKind;
  /** kept: one process a peer through all rounds, warmed first. fresh: a new one for each measurement. */
  readonly proxies: "kept" | "fresh";
  /** Only peers that can leave TLS to the backend take part, as they do that. */
  readonly isPassthrough?: true;
  readonly metrics: readonly Metric[];
  measure(measuring: Measuring): Promise<Figures>;
};
