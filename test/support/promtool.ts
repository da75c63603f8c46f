/** promtool, which judges rules on series that a test has; it comes with Debian's package `prometheus`. */
import { execFile } from "node:child_process";
import { accessSync, constants, globSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { alerts } from "../../src/admin/monitoring/alerts.ts";
import { rulesFile } from "../../src/admin/monitoring/rules.ts";
import { cacheFolder } from "../real/rig/parts.ts";

/** On the PATH, or where test/real/prepare.sh has put it; undefined when it is nowhere. */
export function programOf(name: "promtool" | "prometheus" | "prometheus-alertmanager"): string | undefined {
  const places = (process.env["PATH"] ?? "").split(delimiter).map((folder) => join(folder, name));
  return [...places, ...globSync(join(cacheFolder(), "{prometheus,alertmanager}-*", name))].find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      return false; // not there
    }
  });
}

export type Series = { readonly series: string; readonly values: string };

/**
 * Of a scrape the series that rules ask for, as promtool's input: each with its value for a quarter of an hour. Its clock
 * begins at 1970, so times of day are moved as far.
 */
export function seriesOf(scrape: string, nowSeconds: number): readonly Series[] {
  const asked = new Set(
    alerts.flatMap(({ expr }) => [...expr.matchAll(/\b[a-z]+_\w+/g)].map(([name]) => name)),
  );
  const all: Series[] = [{ series: 'up{job="watchkeeper", instance="wk-1"}', values: "1x90" }];
  // Series without a value yet (NaN) are omitted: promtool cannot read them.
  for (const [, name = "", labels = "", value = ""] of scrape.matchAll(sample)) {
    // The delay of the event loop at one moment says nothing of the two minutes for which its rule waits.
    if (!asked.has(name) || name.startsWith("nodejs_")) continue;
    const moved = name.endsWith("_timestamp_seconds") ? Number(value) - nowSeconds : value;
    all.push({ series: withInstance(name, labels), values: `${moved}x90` });
  }
  return all;
}

/** One line of Prometheus' text: name, labels and value. */
const sample = /^([a-z]\w*)(?:\{(.*)\})? ([-+.\de]+)$/gm;

function withInstance(name: string, labels: string): string {
  return `${name}{job="watchkeeper", instance="wk-1"${labels === "" ? "" : `, ${labels}`}}`;
}

/** Of an alert: its name, and those of its labels that say who it is. */
export type Firing = Readonly<Record<string, string>>;

const told = ["alertname", "backend", "namespace", "name", "reason"] as const;

/** Seconds after which every rule has waited for as long as its `for` says. */
const allHeld = 700;

export type Scenario = {
  readonly series: readonly Series[];
  /** Exactly these fire */
  readonly expected: readonly Firing[];
  /** So long after the first scrape; default: when every rule has waited for as long as its `for` says. */
  readonly atSeconds?: number;
  /** Counts the alerts that have fired at any time before, too. */
  readonly sinceStart?: boolean;
};

/** Undefined when each fires what it should; else what promtool says. */
export function wrongAlerts(scenarios: readonly Scenario[]): Promise<string | undefined> {
  const tests = scenarios.map(({ series, expected, atSeconds = allHeld, sinceStart = false }) => ({
    interval: "10s",
    input_series: series,
    promql_expr_test: [
      {
        expr: `count by (${told.join(", ")}) (${sinceStart ? `max_over_time(${firing}[1h])` : firing})`,
        eval_time: `${atSeconds}s`,
        exp_samples: expected.map((labels) => ({ labels: labelText(labels), value: 1 })),
      },
    ],
  }));
  return run(JSON.stringify({ rule_files: ["rules.yaml"], evaluation_interval: "10s", tests }));
}

const firing = 'ALERTS{alertstate="firing"}';

function labelText(labels: Firing): string {
  return `{${Object.entries(labels)
    .map(([name, value]) => `${name}=${JSON.stringify(value)}`)
    .join(", ")}}`;
}

async function run(tests: string): Promise<string | undefined> {
  const program = programOf("promtool");
  if (program === undefined) throw new Error("There is no promtool");
  const folder = mkdtempSync(join(tmpdir(), "watchkeeper-promtool-"));
  writeFileSync(join(folder, "rules.yaml"), rulesFile());
  writeFileSync(join(folder, "tests.yaml"), tests);
  const outcome = await promtool(program, ["test", "rules", join(folder, "tests.yaml")]);
  rmSync(folder, { recursive: true });
  return outcome;
}

/** Undefined when it is content. */
function promtool(program: string, args: readonly string[], input = ""): Promise<string | undefined> {
  return new Promise((done) => {
    const child = execFile(program, [...args], { timeout: 300_000 }, (error, out, complaints) => {
      done(error === null ? undefined : `${error.message}\n${out}${complaints}`);
    });
    child.stdin?.end(input);
  });
}

/** Undefined when an alert fires with exactly these texts; else what promtool says. */
export function wrongTexts(
  alertname: string,
  series: readonly Series[],
  expected: { readonly labels: Firing; readonly annotations: Readonly<Record<string, string>> },
): Promise<string | undefined> {
  const test = {
    interval: "10s",
    input_series: series,
    alert_rule_test: [
      {
        eval_time: `${allHeld}s`,
        alertname,
        exp_alerts: [{ exp_labels: expected.labels, exp_annotations: expected.annotations }],
      },
    ],
  };
  return run(JSON.stringify({ rule_files: ["rules.yaml"], evaluation_interval: "10s", tests: [test] }));
}

/** What `promtool check rules` has against a file; undefined for nothing. */
export function wrongRules(file: string): Promise<string | undefined> {
  const program = programOf("promtool");
  if (program === undefined) throw new Error("There is no promtool");
  return promtool(program, ["check", "rules", resolve(file)]);
}

/** What `promtool check metrics` has against a scrape; undefined for nothing. */
export function wrongMetrics(scrape: string): Promise<string | undefined> {
  const program = programOf("promtool");
  if (program === undefined) throw new Error("There is no promtool");
  return promtool(program, ["check", "metrics"], scrape);
}

/** A test that needs it is skipped aloud where it is not. */
export function isMissing(): boolean {
  if (programOf("promtool") !== undefined) return false;
  process.stdout.write("skip: needs promtool: apt-get install prometheus, or test/real/prepare.sh\n");
  return true;
}
