/** Runs promtool, which evaluates the alert rules on given series. It comes with Debian's package `prometheus`. */
import { execFile } from "node:child_process";
import { accessSync, constants, globSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { cacheFolder } from "../real/rig/parts.ts";
import { alerts, rulesFile } from "./alert-rules.ts";

/**
 * Finds the program on the PATH, or in the folder to which test/real/prepare.sh downloads it. Returns undefined if it
 * is in neither.
 */
export function programOf(name: "promtool" | "prometheus" | "prometheus-alertmanager"): string | undefined {
  const places = (process.env["PATH"] ?? "").split(delimiter).map((folder) => join(folder, name));
  return [...places, ...globSync(join(cacheFolder(), "{prometheus,alertmanager}-*", name))].find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      return false; // not in this folder
    }
  });
}

export type Series = { readonly series: string; readonly values: string };

/**
 * Returns those series of a scrape to which the alert rules refer, as input for promtool. Each keeps its value for a
 * quarter of an hour. promtool's clock starts in 1970, so timestamps are shifted by `nowSeconds`.
 */
export function seriesOf(scrape: string, nowSeconds: number): readonly Series[] {
  const asked = new Set(
    alerts.flatMap(({ expr }) => [...expr.matchAll(/\b[a-z]+_\w+/g)].map(([name]) => name)),
  );
  const all: Series[] = [{ series: 'up{job="watchkeeper", instance="wk-1"}', values: "1x90" }];
  // Series without a value yet (NaN) are omitted: promtool cannot read them.
  for (const [, name = "", labels = "", value = ""] of scrape.matchAll(sample)) {
    // The event loop delay is omitted: its rule looks at two minutes, which one scrape does not represent.
    if (!asked.has(name) || name.startsWith("nodejs_")) continue;
    const moved = name.endsWith("_timestamp_seconds") ? Number(value) - nowSeconds : value;
    all.push({ series: withInstance(name, labels), values: `${moved}x90` });
  }
  return all;
}

/** A line of the Prometheus text format: name, labels and value. */
const sample = /^([a-z]\w*)(?:\{(.*)\})? ([-+.\de]+)$/gm;

function withInstance(name: string, labels: string): string {
  return `${name}{job="watchkeeper", instance="wk-1"${labels === "" ? "" : `, ${labels}`}}`;
}

/** The name of an alert and the labels that identify it. */
export type Firing = Readonly<Record<string, string>>;

const told = ["alertname", "backend", "namespace", "name", "reason"] as const;

/** Seconds after which the `for` duration of every rule has passed. */
const allHeld = 700;

export type Scenario = {
  readonly series: readonly Series[];
  /** Exactly these alerts must fire. */
  readonly expected: readonly Firing[];
  /** Seconds after the first scrape; default: after the `for` duration of every rule has passed. */
  readonly atSeconds?: number;
  /** If true, alerts that have fired at any earlier time count too. */
  readonly sinceStart?: boolean;
};

/** Returns undefined if in each scenario exactly the expected alerts fire; else the output of promtool. */
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

/** Runs promtool. Returns undefined if it succeeds; else its output. */
function promtool(program: string, args: readonly string[], input = ""): Promise<string | undefined> {
  return new Promise((done) => {
    const child = execFile(program, [...args], { timeout: 300_000 }, (error, out, complaints) => {
      done(error === null ? undefined : `${error.message}\n${out}${complaints}`);
    });
    child.stdin?.end(input);
  });
}

/** Returns undefined if the alert fires with exactly these labels and annotations; else the output of promtool. */
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

/** Returns the complaints of `promtool check rules` about a file; undefined if there are none. */
export function wrongRules(file: string): Promise<string | undefined> {
  const program = programOf("promtool");
  if (program === undefined) throw new Error("There is no promtool");
  return promtool(program, ["check", "rules", resolve(file)]);
}

/** Returns the complaints of `promtool check metrics` about a scrape; undefined if there are none. */
export function wrongMetrics(scrape: string): Promise<string | undefined> {
  const program = programOf("promtool");
  if (program === undefined) throw new Error("There is no promtool");
  return promtool(program, ["check", "metrics"], scrape);
}

/** True if promtool is not installed. It also prints that the test is skipped. */
export function isMissing(): boolean {
  if (programOf("promtool") !== undefined) return false;
  process.stdout.write("skip: needs promtool: apt-get install prometheus, or test/real/prepare.sh\n");
  return true;
}
