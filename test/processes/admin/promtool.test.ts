/** Evaluates every alert rule with promtool, on series that should make it fire and on series that should not. */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { withoutExemplars } from "../../../src/ops/admin/metrics/open-metrics.ts";
import { type Alert, alerts, rulesPath } from "../../support/alert-rules.ts";
import { idleScrape } from "../../support/metrics.ts";
import {
  type Firing,
  isMissing,
  type Scenario,
  type Series,
  seriesOf,
  wrongAlerts,
  wrongMetrics,
  wrongRules,
  wrongTexts,
} from "../../support/promtool.ts";
import { active, expiry, from, ready } from "../../support/promtool-series.ts";

const test = suite("ops/admin/promtool");
const it = isMissing() ? test.skip : test;

/** Returns the series of a healthy proxy. */
async function well(): Promise<readonly Series[]> {
  const text = await idleScrape();
  const quiet = text.replaceAll(/^watchkeeper_config_restart_required.*$/gm, "");
  return seriesOf(quiet, 0);
}

type Case = Omit<Scenario, "series" | "expected"> & {
  readonly series?: readonly Series[];
  readonly expected?: readonly Firing[];
};

/** Checks which alerts fire on these series, added to those of a healthy proxy. */
async function fire(...cases: readonly Case[]): Promise<void> {
  const all = await well();
  const scenarios = cases.map(({ series = [], expected = [], ...more }) => {
    const names = new Set(series.map((one) => one.series));
    return { series: [...all.filter((one) => !names.has(one.series)), ...series], expected, ...more };
  });
  assert.is(await wrongAlerts(scenarios), undefined);
}

it("promtool reads the rules", async () => {
  assert.is(await wrongRules(rulesPath), undefined);
});

it("promtool finds nothing wrong with the metrics and their names", async () => {
  const text = withoutExemplars(await idleScrape());
  assert.is(await wrongMetrics(text), undefined);
  const wrong = await wrongMetrics(`${text}# TYPE bad_seconds counter\nbad_seconds 1\n`);
  assert.match(wrong ?? "", "bad_seconds");
});

it("where all is well nothing fires", async () => {
  await fire({});
});

function holdsSeconds({ holds }: Pick<Alert, "holds">): number {
  return Number.parseInt(holds, 10) * (holds.endsWith("m") ? 60 : 1);
}

it("each alert of an incident fires for its kinds after its time, with the backend, and ends with them", async () => {
  const ofIncidents = alerts.flatMap((alert) =>
    alert.kinds.filter((kind) => alert.expr.includes(kind)).map((kind) => ({ alert, kind })),
  );
  assert.ok(ofIncidents.length >= 17);
  const cases = ofIncidents.flatMap(({ alert, kind }): Case[] => {
    const backend = alert.by.includes("backend") ? "cp-2" : "";
    const fired = {
      alertname: alert.name,
      ...(backend === "" ? {} : { backend }),
      ...(alert.by.includes("reason") ? { reason: kind } : {}),
    };
    const held = holdsSeconds(alert);
    const lasting = [active(kind, { backend })];
    const isRemembered = kind === "relist-storm";
    const short = [active(kind, { backend, values: `1x${Math.floor(held / 10) - 1} 0x90` })];
    return [
      { series: lasting, expected: [fired], atSeconds: held + 20 },
      ...(isRemembered ? [] : [{ series: short, sinceStart: true }]),
    ];
  });
  await fire(...cases);
});

it("a rolling upgrade of three apiservers raises no alert, and a slow one no critical alert", async () => {
  const away = (first: number, scrapes: number): string =>
    `0x${first} 1x${scrapes} 0x${88 - first - scrapes}`;
  const upgrade = (scrapes: number): readonly Series[] =>
    ["cp-1", "cp-2", "cp-3"].flatMap((backend, at) =>
      ["wk-1", "wk-2", "wk-3"].flatMap((instance) => [
        active("backend-dead", { backend, instance, values: away(at * 27, scrapes) }),
        ready(
          backend,
          away(at * 27, scrapes).replaceAll(/\b([01])x/g, (_, is) => `${1 - Number(is)}x`),
          instance,
        ),
      ]),
    );
  const slow = ["cp-1", "cp-2", "cp-3"].map((backend) => ({ alertname: "WatchkeeperBackendDown", backend }));
  await fire(
    { series: upgrade(9), sinceStart: true, atSeconds: 900 },
    { series: upgrade(24), expected: slow, sinceStart: true, atSeconds: 900 },
  );
  assert.is(alerts.find(({ name }) => name === "WatchkeeperBackendDown")?.severity, "warning");
});

/** 1,000 proxies, because promtool allows 10,000 samples in a query. test/real/alerts.test.ts has 5,000. */
it("one dead apiserver that 1,000 proxies see, some as dead and some as silent, is one warning", async () => {
  const kinds = ["backend-dead", "backend-blackholed", "backend-frozen"] as const;
  const series = Array.from({ length: 1000 }, (_, at) => {
    const instance = `node-${at}:7481`;
    return [
      active(kinds[at % 3] ?? "", { backend: "cp-2", instance }),
      ready("cp-1", "1x90", instance),
      ready("cp-2", "0x90", instance),
    ];
  }).flat();
  await fire({ series, expected: [{ alertname: "WatchkeeperBackendDown", backend: "cp-2" }] });
});

it("no ready apiserver is one critical alert, and one instance that sees none is a warning", async () => {
  const names = ["cp-1", "cp-2", "cp-3"];
  const instances = ["wk-1", "wk-2", "wk-3"];
  const down = instances.flatMap((instance) => [
    active("all-backends-down", { instance }),
    ...names.flatMap((backend) => [
      active("backend-blackholed", { backend, instance }),
      ready(backend, "0x90", instance),
    ]),
  ]);
  const critical = { alertname: "WatchkeeperNoReadyBackends" };
  const unhealthy = { alertname: "WatchkeeperInstanceUnhealthy", reason: "no-ready-backend" };
  const alone = instances.flatMap((instance) => [
    ready("cp-1", instance === "wk-2" ? "0x90" : "1x90", instance),
    ...(instance === "wk-2" ? [active("all-backends-down", { instance })] : []),
  ]);
  const backends = names.map((backend) => ({ alertname: "WatchkeeperBackendDown", backend }));
  await fire(
    { series: down, atSeconds: 20 },
    { series: down, expected: [critical], atSeconds: 50 },
    // Alertmanager inhibits the warnings: deploy/monitoring/alertmanager.yaml, test/real/alertmanager.test.ts.
    { series: down, expected: [critical, unhealthy, ...backends] },
    { series: alone, expected: [unhealthy] },
  );
});

it("of two clusters behind the same instances, one without a ready apiserver is a critical alert", async () => {
  const series = ["wk-1", "wk-2"].flatMap((instance) => [
    ready("eu/cp-1", "0x90", instance),
    ready("us/cp-1", "1x90", instance),
  ]);
  const expected = [
    { alertname: "WatchkeeperNoReadyBackends" },
    { alertname: "WatchkeeperInstanceUnhealthy", reason: "no-ready-backend" },
  ];
  await fire({ series, expected });
});

const lease = 'namespace="ingress", name="leader"';

/** For each incident: all series that an instance exposes during it, and the only alert that must fire. */
const incidents: Readonly<Record<string, { readonly series: readonly Series[]; readonly expected: Firing }>> =
  {
    "000, one bad certificate": {
      series: [
        active("certificate-refused"),
        {
          series: `watchkeeper_certificate_reloads_total{${from()}, name="kube", result="rejected"}`,
          values: "1x90",
        },
      ],
      expected: { alertname: "WatchkeeperCertificateRefused" },
    },
    "001, replay from an old version": {
      series: [active("watch-replay-loop"), active("version-regression", { backend: "cp-1" })],
      expected: { alertname: "WatchkeeperWatchReplayLoop" },
    },
    "002, a leader lease that a ghost holds": {
      series: [
        active("lease-ghost-holder"),
        { series: `watchkeeper_lease_suspect{${from()}, ${lease}, verdict="ghost"}`, values: "1x90" },
        // Another instance has seen only part of the renewals, and reaches another verdict.
        {
          series: `watchkeeper_lease_suspect{${from("wk-2")}, ${lease}, verdict="contested"}`,
          values: "1x90",
        },
        {
          series: `watchkeeper_lease_holder_info{${from()}, ${lease}, holder="pod-a_1", source="10.9.3.7"}`,
          values: "1x90",
        },
      ],
      expected: { alertname: "WatchkeeperLeaseSuspect", namespace: "ingress", name: "leader" },
    },
    "003, an expired loopback certificate": {
      series: [
        expiry("backend-loopback", "cp-2", -60),
        active("loopback-certificate-expiring", { backend: "cp-2" }),
        active("backend-unready", { backend: "cp-2" }),
      ],
      expected: { alertname: "WatchkeeperLoopbackCertificateExpiring", backend: "cp-2" },
    },
    "004, watches that hang on a silent apiserver": {
      series: [
        active("backend-blackholed", { backend: "cp-2" }),
        active("backend-frozen", { backend: "cp-2", instance: "wk-2" }),
        active("watch-hung", { backend: "cp-2" }),
      ],
      expected: { alertname: "WatchkeeperBackendDown", backend: "cp-2" },
    },
  };

for (const [name, { series, expected }] of Object.entries(incidents)) {
  it(`incident ${name}: exactly one alert`, async () => {
    await fire({ series, expected: [expected] });
  });
}

const day = 86_400;

/** The clock of promtool starts in 1970, and the alerts are evaluated 700 s later. */
const expiryOf = (days: number): number => 700 + Math.round(days * day);

const commands =
  "Commands run on the host of an instance, or through `kubectl port-forward POD 7480`: `watchkeeper docs runbooks/README`";

function runbookPage(name: string): string {
  return `watchkeeper docs runbooks/${name}`;
}

it("the alert of a backend names only the active kinds, its instances with their pods, and all apiservers' states", async () => {
  const state = (backend: string, is: string, instance: string): Series => ({
    series: `watchkeeper_backend_state{${from(instance)}, backend="${backend}", state="${is}"}`,
    values: "1x90",
  });
  const pod = `${from("wk-2")}, pod="watchkeeper-b"`;
  const series = [
    active("backend-frozen", { backend: "cp-2", values: "0x5 1x90" }),
    {
      series: `watchkeeper_incident_active{${pod}, kind="backend-blackholed", backend="cp-2"}`,
      values: "0x5 1x90",
    },
    active("backend-dead", { backend: "cp-1", values: "0x90" }),
    state("cp-1", "ready", "wk-1"),
    state("cp-2", "dead", "wk-1"),
    state("cp-1", "ready", "wk-2"),
    state("cp-2", "suspect", "wk-2"),
  ];
  const wrong = await wrongTexts("WatchkeeperBackendDown", series, {
    labels: { backend: "cp-2", severity: "warning" },
    annotations: {
      summary: "Apiserver cp-2 cannot be used: backend-blackholed backend-frozen (instances: 2)",
      description: [
        "Affected: exec, attach, port-forward and `logs -f` through it ended, if there were any; reads and watches have moved to the other apiservers, which carry its load.",
        "Since: 1970-01-01 00:01:00 +0000 UTC.",
        "First: on an instance below, run `watchkeeper explain backend-blackholed` `watchkeeper explain backend-frozen`: EVIDENCE says what failed. The runbook has the action for each kind.",
        commands,
        "Reported by:",
        "- instance wk-1: backend-frozen",
        "- instance wk-2 (pod watchkeeper-b): backend-blackholed",
        "- apiserver cp-1 is ready (instances: 2)",
        "- apiserver cp-2 is dead (instances: 1)",
        "- apiserver cp-2 is suspect (instances: 1)",
      ].join("\n"),
      runbook: runbookPage("WatchkeeperBackendDown"),
      incidents: "active: backend-blackholed backend-frozen",
    },
  });
  assert.is(wrong, undefined);
});

it("the alert of a refused certificate says what not to do, and lists only instances that still refuse it", async () => {
  const rejected = (instance: string): Series => ({
    series: `watchkeeper_certificate_reloads_total{${from(instance)}, name="kube", result="rejected"}`,
    values: "2x90",
  });
  const series = [active("certificate-refused"), rejected("wk-1"), rejected("wk-2")];
  const wrong = await wrongTexts("WatchkeeperCertificateRefused", series, {
    labels: { severity: "warning" },
    annotations: {
      summary:
        "A new certificate or key is bad: the last good one stays in use until it expires (instances: 1)",
      description: [
        "Affected: no client yet: the last good certificate stays in use, and nothing else is affected.",
        "Since: 1970-01-01 00:00:00 +0000 UTC.",
        "First: do not restart watchkeeper and roll out no new version: only the memory of the process has the last good one. `watchkeeper explain certificate-refused` on an instance below names the files, what is wrong, and which of two files has changed.",
        commands,
        "Reported by:",
        "- instance wk-1: kube (column NAME of `watchkeeper get certificates`): new files rejected (2 since the start of the instance)",
      ].join("\n"),
      runbook: runbookPage("WatchkeeperCertificateRefused"),
      incidents: "active: certificate-refused",
    },
  });
  assert.is(wrong, undefined);
});

it("the alert of a lease has the command that explains its verdict", async () => {
  const seriesOfLease = (name: string, more: string): Series => ({
    series: `watchkeeper_lease_${name}{${from()}, namespace="shop", name="leader", ${more}}`,
    values: "1x90",
  });
  const series = [
    ...["contested", "ghost", "unknown"].map((verdict) => seriesOfLease("suspect", `verdict="${verdict}"`)),
    seriesOfLease("holder_info", 'holder="cart-0", source="10.9.3.7"'),
  ];
  const wrong = await wrongTexts("WatchkeeperLeaseSuspect", series, {
    labels: { namespace: "shop", name: "leader", severity: "warning" },
    annotations: {
      summary: "Leader lease shop/leader is renewed by the wrong client: contested ghost unknown",
      description: [
        "Affected: the program of this lease. Verdict ghost: a process that should be gone, or that uses another pod's token, renews it; contested: two clients lead; unknown: a client leads that never did before.",
        "Since: 1970-01-01 00:00:00 +0000 UTC.",
        "First: on an instance below, run `watchkeeper explain lease-contested` `watchkeeper explain lease-ghost-holder` `watchkeeper explain lease-unknown-client`, also after the incident has ended: EVIDENCE and CAUSED BY name the process to stop, and NEXT has the commands that find it.",
        commands,
        "Reported by:",
        "- instance wk-1: holder cart-0, renewed last from 10.9.3.7",
      ].join("\n"),
      runbook: runbookPage("WatchkeeperLeaseSuspect"),
      incidents: "active:",
    },
  });
  assert.is(wrong, undefined);
});

for (const [days, left] of [
  [19.9, "expires in 19 days"],
  [1.9, "expires in 1 day"],
  [0.9, "expires in less than a day"],
  [-0.1, "has expired"],
] as const)
  it(`the alert of a loopback certificate counts days: ${left}`, async () => {
    const lost = "admission, aggregation and the own controllers of this apiserver fail";
    const wrong = await wrongTexts(
      "WatchkeeperLoopbackCertificateExpiring",
      [expiry("backend-loopback", "cp-2", expiryOf(days)), expiry("backend-loopback", "cp-1", expiryOf(99))],
      {
        labels: { backend: "cp-2", severity: "warning" },
        annotations: {
          summary: `The loopback certificate of apiserver cp-2 ${left}: only a restart of the apiserver renews it`,
          description: [
            `Affected: ${days < 0 ? `${lost} now` : `no client yet; from then on, ${lost}`}.`,
            "Since: 1970-01-01 00:00:00 +0000 UTC.",
            "First: `watchkeeper get certificates purpose=backend-loopback -o wide` on an instance below shows all apiservers with such a certificate. It is in no file: drain cp-2, restart its kube-apiserver, and end the drain, as the runbook says.",
            commands,
            "Reported by:",
            `- instance wk-1: cp-2 expires at ${new Date(expiryOf(days) * 1000)
              .toISOString()
              .replace("T", " ")
              .replace(/\.\d+Z/, "")} +0000 UTC`,
          ].join("\n"),
          runbook: runbookPage("WatchkeeperLoopbackCertificateExpiring"),
          incidents: "active:",
        },
      },
    );
    assert.is(wrong, undefined);
  });

it("an instance that serves several clusters: each cluster has alerts of its own", async () => {
  const loopback = {
    series: `watchkeeper_certificate_expiry_timestamp_seconds{${from()}, purpose="backend-loopback", name="us/cp-1", cluster="us"}`,
    values: "-1x90",
  };
  await fire({
    series: [
      active("backend-dead", { backend: "eu/cp-1" }),
      active("backend-unready", { backend: "us/cp-1" }),
      loopback,
    ],
    expected: [
      { alertname: "WatchkeeperBackendDown", backend: "eu/cp-1" },
      { alertname: "WatchkeeperLoopbackCertificateExpiring", backend: "us/cp-1" },
    ],
  });
});

it("with several clusters in one Prometheus, an alert lists the instances of its own cluster", async () => {
  const of = (cluster: string, instance: string): Series => ({
    series: `watchkeeper_incident_active{${from(instance)}, cluster="${cluster}", kind="watch-replay-loop"}`,
    values: cluster === "eu" ? "1x90" : "0x90",
  });
  const regressed = {
    series: `watchkeeper_incident_active{${from("wk-9")}, cluster="us", kind="version-regression", backend="cp-1"}`,
    values: "0x69 1x90",
  };
  const wrong = await wrongTexts(
    "WatchkeeperWatchReplayLoop",
    [of("eu", "wk-1"), of("us", "wk-2"), regressed],
    {
      labels: { cluster: "eu", severity: "warning" },
      annotations: {
        summary: "History is replayed: watch-replay-loop (instances: 1)",
        description: [
          "Affected: one client restarts a watch from the same old version (watch-replay-loop), or an apiserver sent an older version than before (version-regression): the client acts on old objects and can undo the work of others.",
          "Since: 1970-01-01 00:00:00 +0000 UTC.",
          "First: on an instance below, run `watchkeeper explain watch-replay-loop`: CAUSED BY is the client with its address and program, or EVIDENCE names the apiserver. NEXT begins the search for the client's process.",
          commands,
          "Reported by:",
          "- instance wk-1: watch-replay-loop",
        ].join("\n"),
        runbook: runbookPage("WatchkeeperWatchReplayLoop"),
        incidents: "active: watch-replay-loop",
      },
    },
  );
  assert.is(wrong, undefined);
});

it("certificates: a week ahead is one warning, an expired one is critical, and a loopback one has a month", async () => {
  const all = (purpose: string, seconds: number): readonly Series[] =>
    ["wk-1", "wk-2", "wk-3"].map((instance) => expiry(purpose, "kube", seconds, instance));
  const soon = { alertname: "WatchkeeperCertificateExpiring", name: "kube" };
  const loopback = { alertname: "WatchkeeperLoopbackCertificateExpiring", backend: "kube" };
  await fire(
    { series: all("serving", 8 * day) },
    { series: all("serving", 6 * day), expected: [soon] },
    { series: all("serving", day / 2), expected: [soon] },
    { series: all("serving", -1), expected: [{ ...soon, alertname: "WatchkeeperCertificateExpired" }] },
    { series: all("backend-loopback", 31 * day) },
    { series: all("backend-loopback", 29 * day), expected: [loopback] },
  );
});

it("instances that cannot be scraped are critical if there is no other, and a warning beside others", async () => {
  const up = (instance: string, values: string): Series => ({ series: `up{${from(instance)}}`, values });
  const down = { alertname: "WatchkeeperDown" };
  const one = { alertname: "WatchkeeperInstanceUnhealthy", reason: "not-scraped" };
  await fire(
    { series: [up("wk-1", "1 0x90")], atSeconds: 120 },
    { series: [up("wk-1", "1 0x90")], expected: [down], atSeconds: 180 },
    { series: [up("wk-1", "0x90"), up("wk-2", "0x90")], expected: [down] },
    { series: [up("wk-1", "1x90"), up("wk-2", "0x90"), up("wk-3", "0x90")], expected: [one] },
  );
  const missing = { series: [], expected: [down] };
  assert.is(await wrongAlerts([missing]), undefined);
});

it("a busy process, a configuration that is not applied and watches that end", async () => {
  const lag = { series: `nodejs_eventloop_lag_p99_seconds{${from()}}`, values: "0.4x90" };
  const rejected = { series: `watchkeeper_config_last_reload_successful{${from()}}`, values: "0x90" };
  const waiting = ["health", "watches"].map((part) => ({
    series: `watchkeeper_config_restart_required{${from()}, part="${part}"}`,
    values: "1x90",
  }));
  const ends = (reason: string): Series => ({
    series: `watchkeeper_watch_ends_total{${from()}, reason="${reason}"}`,
    values: "0+10x90",
  });
  const notApplied = { alertname: "WatchkeeperConfigNotApplied" };
  await fire(
    { series: [lag], atSeconds: 100 },
    { series: [lag], expected: [{ alertname: "WatchkeeperOverload", reason: "event-loop-delay" }] },
    { series: [rejected], expected: [{ ...notApplied, reason: "rejected" }] },
    { series: waiting, expected: [{ ...notApplied, reason: "restart-required" }] },
    { series: waiting, atSeconds: 580 },
    { series: [ends("expired")], atSeconds: 290 },
    {
      series: [ends("expired"), ends("drained"), ends("not_found")],
      expected: [{ alertname: "WatchkeeperWatchesEnded", reason: "expired" }],
    },
  );
});

it("clients that are refused are one alert, and an address that is close to its limit is, too", async () => {
  const refused = ["malformed", "too large"].map((reason) => ({
    series: `watchkeeper_requests_refused_total{${from()}, reason="${reason}"}`,
    values: "0+5x90",
  }));
  const turnedAway = {
    series: `watchkeeper_downstream_connections_refused_total{${from()}, reason="too many connections from one source"}`,
    values: "0+5x90",
  };
  const share = (value: number): Series => ({
    series: `watchkeeper_downstream_source_connections_ratio{${from()}}`,
    values: `${value}x90`,
  });
  const expected = [{ alertname: "WatchkeeperClientsRefused" }];
  await fire(
    { series: refused, expected },
    { series: [turnedAway], expected },
    { series: [share(0.79)] },
    { series: [share(0.81)], expected },
    { series: [turnedAway, share(1)], expected },
  );
});

test.run();
