/** Declares watchkeeper's performance targets, and checks them against the medians of one run. */
import type { Medians } from "./report.ts";

type Target = {
  readonly scenario: string;
  readonly metric: string;
  /**
   * The peer by whose figure watchkeeper's figure is divided: `atMost` then limits the ratio. If absent, `atMost`
   * limits watchkeeper's figure itself.
   */
  readonly versus?: string;
  readonly atMost: number;
};

const targets: readonly Target[] = [
  { scenario: "small-8x16", metric: "cpuUs", versus: "nghttpx", atMost: 1.2 },
  { scenario: "small-8x16", metric: "cpuUs", versus: "envoy", atMost: 0.45 },
  { scenario: "small-64x1", metric: "cpuUs", versus: "nghttpx", atMost: 1.2 },
  { scenario: "small-64x1", metric: "cpuUs", versus: "envoy", atMost: 0.7 },
  // Watchkeeper, compared with watchkeeper without the parts that only observe, such as log and metrics.
  { scenario: "small-8x16", metric: "cpuUs", versus: "watchkeeper-plain", atMost: 1.1 },
  { scenario: "small-64x1", metric: "cpuUs", versus: "watchkeeper-plain", atMost: 1.05 },
  { scenario: "list", metric: "cpuMs", versus: "nghttpx", atMost: 1.3 },
  { scenario: "idle-clients", metric: "kb", atMost: 75 },
  { scenario: "watches", metric: "kb", atMost: 5 },
  // PINGs on 600 upstream connections and probes of three backends, measured by bench/pulse.ts.
  { scenario: "pulse", metric: "percent", atMost: 5 },
  { scenario: "rate-1000", metric: "p99", versus: "nghttpx", atMost: 2 },
];

/** Returns one line for each target that this run can judge. */
export function verdicts(ours: string, medians: Medians): string[] {
  return targets.flatMap(({ scenario, metric, versus, atMost }) => {
    const figure = medians[scenario]?.[ours]?.[metric];
    const base = versus === undefined ? 1 : medians[scenario]?.[versus]?.[metric];
    if (figure === undefined || base === undefined) return [];
    const reached = figure / base;
    const what = `${scenario} ${metric}${versus === undefined ? "" : ` / ${versus}`}`;
    return [`${reached <= atMost ? "✓" : "✗"} ${what}: ${reached.toFixed(2)} (at most ${atMost})`];
  });
}
