/** Every rule on series that should make it fire, and on those that should not, by Prometheus' own tool. */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { alerts } from "../../../src/admin/monitoring/alerts.ts";
import { idleScrape } from "../../support/metrics.ts";
import {
  type Firing,
  isMissing,
  type Series,
  seriesOf,
  wrongAlerts,
  wrongRules,
} from "../../support/promtool.ts";

const test = suite("admin/promtool");
const it = isMissing() ? test.skip : test;
const own = 'job="watchkeeper", instance="wk-1"';

/** What a proxy exposes for which all is well. */
async function well(): Promise<readonly Series[]> {
  const text = await idleScrape();
  return seriesOf(text.replaceAll(/^nodejs_eventloop_lag_p99_seconds .*$/gm, ""), 0);
}

type Case = readonly [series: readonly Series[], expected: readonly Firing[], atSeconds?: number];

/** Alerts that series make fire, besides those of a proxy for which all is well. */
async function fire(...cases: readonly Case[]): Promise<void> {
  const all = await well();
  const scenarios = cases.map(([series, expected, atSeconds = 30]) => {
    const names = new Set(series.map((one) => one.series));
    const rest = all.filter((one) => !names.has(one.series));
    return { series: [...rest, ...series], expected, atSeconds };
  });
  assert.is(await wrongAlerts(scenarios), undefined);
}

it("promtool reads the rules", async () => {
  assert.is(await wrongRules("config/monitoring/rules.yaml"), undefined);
});

it("where all is well nothing fires", async () => {
  await fire([[], [], 600]);
});

it("each alert of an incident fires for its kinds, with the backend, and ends with them", async () => {
  const ofIncidents = alerts.filter(({ expr }) => expr.startsWith("watchkeeper_incident_active"));
  assert.ok(ofIncidents.length >= 15);
  const cases = ofIncidents.flatMap(({ name, kinds }) =>
    kinds.flatMap((kind): Case[] => {
      const backend = kind.startsWith("backend-") ? "cp-2" : "";
      const series = `watchkeeper_incident_active{${own}, kind="${kind}", backend="${backend}"}`;
      const fired = { alertname: name, ...(backend === "" ? {} : { backend }) };
      // There at the second scrape, gone after half a minute.
      const values = backend === "" ? "0 1 1 0x20" : "_ 1 1 stale";
      return [
        [[{ series, values }], [fired], 20],
        [[{ series, values }], [], 60],
      ];
    }),
  );
  await fire(...cases);
});

it("a lock is reported with the caller and address that renew it, whatever else has its name", async () => {
  const lock = `${own}, namespace="ingress", name="leader"`;
  for (const [verdict, alertname] of [
    ["ghost", "WatchkeeperLeaseGhostHolder"],
    ["contested", "WatchkeeperLeaseContested"],
    ["unknown", "WatchkeeperLeaseUnknownClient"],
  ] as const) {
    const suspect = {
      series: `watchkeeper_lease_suspect{${lock}, verdict="${verdict}"}`,
      values: "_ 1x5 stale",
    };
    const holder = {
      series: `watchkeeper_lease_holder_info{${lock}, holder="pod-a_1", source="10.9.3.7"}`,
      values: "1x20",
    };
    const who = { namespace: "ingress", name: "leader", holder: "pod-a_1", source: "10.9.3.7" };
    // A ConfigMap of the same name, as old client-go writes beside the Lease.
    const twin = {
      series: `watchkeeper_lease_holder_info{${lock}, holder="pod-b_1", source="10.9.3.8"}`,
      values: "0x20",
    };
    const fired = [{ alertname, ...who }];
    await fire(
      [[suspect, holder], fired, 20],
      [[suspect, holder], [], 120],
      [[suspect, holder, twin], fired, 20],
    );
  }
});

it("certificates: a week, a day, and a month for what only a restart renews", async () => {
  const day = 86_400;
  const expiry = (purpose: string, seconds: number): Series => ({
    series: `watchkeeper_certificate_expiry_timestamp_seconds{${own}, purpose="${purpose}", name="kube"}`,
    values: `${seconds}x20`,
  });
  const soon = { alertname: "WatchkeeperCertificateExpiringSoon", name: "kube" };
  const now = { ...soon, alertname: "WatchkeeperCertificateExpiringNow" };
  await fire(
    [[expiry("serving", 8 * day)], []],
    [[expiry("serving", 6 * day)], [soon]],
    [[expiry("serving", day / 2)], [soon, now]],
    [[expiry("backend-loopback", 31 * day)], []],
    [
      [expiry("backend-loopback", 29 * day)],
      [{ ...soon, alertname: "WatchkeeperLoopbackCertificateExpiring" }],
    ],
  );
});

it("one that cannot be scraped is down after a minute, and so is a job without any", async () => {
  const down = [{ series: `up{${own}}`, values: "1 0x60" }];
  await fire([down, [], 60], [down, [{ alertname: "WatchkeeperDown" }], 120]);
  const missing = { series: [], expected: [{ alertname: "WatchkeeperDown" }], atSeconds: 120 };
  assert.is(await wrongAlerts([missing]), undefined);
});

it("a late loop, a refused configuration and watches that end are told, each with its patience", async () => {
  const lag = [{ series: `nodejs_eventloop_lag_p99_seconds{${own}}`, values: "0.4x60" }];
  const refused = { series: `watchkeeper_config_last_reload_successful{${own}}`, values: "0x20" };
  const ends = (reason: string): Series => ({
    series: `watchkeeper_watch_ends_total{${own}, reason="${reason}"}`,
    values: "0+10x90",
  });
  const failing = { alertname: "WatchkeeperWatchMovesFailing", reason: "expired" };
  await fire(
    [lag, [], 60],
    [lag, [{ alertname: "WatchkeeperEventLoopLagHigh" }], 150],
    [[refused], [{ alertname: "WatchkeeperConfigReloadFailed" }]],
    [[ends("expired")], [], 120],
    [[ends("expired"), ends("drained"), ends("not_found")], [failing], 700],
  );
});

test.run();
