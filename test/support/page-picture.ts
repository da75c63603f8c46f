/**
 * The data of the API for README's screenshot: a cluster of two apiservers, one of which has just stopped responding.
 */
import { backend, changeAt, incident, noIdentity, timeAt } from "./page.ts";

type Who = {
  readonly subject: string;
  readonly agent: string;
  readonly client: string;
  readonly subjectSource: string;
};

const who = (subject: string, agent: string, client: string, subjectSource = "vouched"): Who => ({
  ...noIdentity,
  subject,
  agent,
  client,
  subjectSource,
});
const scheduler = who("system:kube-scheduler", "kube-scheduler", "10.0.0.11");
const manager = who("system:kube-controller-manager", "kube-controller-manager", "10.0.0.11");
const kubelet = who("system:node:worker-7", "kubelet", "10.0.1.7");
const argocd = who("system:serviceaccount:argocd:controller", "argocd", "10.0.1.21", "jwt");
const prometheus = who("system:serviceaccount:monitoring:prometheus", "prometheus", "10.0.1.9", "jwt");
const stranger = who("", "unknown", "10.9.3.7", "none");

type Open = {
  readonly by: Who;
  readonly resource: string;
  readonly silentMs: number;
  readonly events: number;
  readonly moves: number;
  readonly version: string;
};

const opened: readonly Open[] = [
  { by: scheduler, resource: "/pods", silentMs: 200, events: 81_204, moves: 1, version: "1182733" },
  { by: manager, resource: "apps/replicasets", silentMs: 900, events: 5_121, moves: 1, version: "1182731" },
  { by: kubelet, resource: "/pods", silentMs: 2_100, events: 614, moves: 0, version: "1182702" },
  {
    by: prometheus,
    resource: "discovery.k8s.io/endpointslices",
    silentMs: 14_000,
    events: 977,
    moves: 1,
    version: "1182655",
  },
  {
    by: argocd,
    resource: "argoproj.io/applications",
    silentMs: 41_000,
    events: 33,
    moves: 0,
    version: "1182533",
  },
  { by: argocd, resource: "/secrets", silentMs: 58_000, events: 4, moves: 1, version: "1181002" },
];

const watches = opened.map(({ by, resource, silentMs, events, moves, version }, at) => ({
  ...by,
  auditId: `a-${at}`,
  path: `/api/v1/watch-${at}`,
  resource,
  backend: "cp-1",
  state: "live",
  ageMs: 190_000 + 61_000 * at,
  resourceVersion: version,
  startResourceVersion: "1180000",
  startedAt: timeAt(190_000 + 61_000 * at),
  port: 40_122 + at,
  bytes: 812_345,
  queuedBytes: 0,
  isResumable: true,
  life: [],
  lastEventAgeMs: silentMs,
  lastBookmarkAgeMs: Math.min(silentMs, 41_000 + at),
  events,
  moves,
  session: "streaming",
}));

const clients = [
  { by: kubelet, requests: 41_202, watches: 812, relists: 0, anomalies: [] },
  { by: argocd, requests: 12_733, watches: 96, relists: 41, anomalies: ["relisting"] },
  { by: scheduler, requests: 9_120, watches: 14, relists: 0, anomalies: [] },
  { by: stranger, requests: 212, watches: 3, relists: 0, anomalies: ["new", "anonymous"] },
].map(({ by, ...rest }, at) => ({
  cluster: "",
  ...by,
  ...rest,
  lastSeenAgeMs: 200 * (at + 1),
  active: 1,
  errors: 0,
  bytes: 1,
}));

const lease = {
  cluster: "",
  resource: "leases",
  state: "held",
  renewedAgeMs: 900,
  verdict: "ok",
  reason: "",
};
const leases = [
  { ...lease, namespace: "kube-system", name: "kube-scheduler", holder: "cp-1_9f2c", renewedBy: scheduler },
  {
    ...lease,
    namespace: "ingress",
    name: "nginx-leader",
    holder: "nginx-x2k4l",
    verdict: "ghost",
    reason: "Pod ingress/nginx-x2k4l was deleted 812 s ago, but still renews from 10.9.3.7",
    renewedBy: { ...stranger, agent: "nginx-controller" },
  },
];

const dead = "the last connection was lost: PING unanswered for 2013 ms";
const reasons = new Map([
  ["ready", "/readyz: ok"],
  ["suspect", "PING unanswered for 612 ms"],
  ["dead", dead],
]);
const row = (agoMs: number, detector: string, value: number, threshold: number, text: string): object => ({
  at: timeAt(agoMs),
  detector,
  value,
  threshold,
  unit: "ms",
  text,
  auditId: "",
  repeats: 0,
});

export const pictured: Readonly<Record<string, readonly object[]>> = {
  incidents: [
    {
      ...incident({ summary: `cp-2: dead: ${dead}` }),
      startedAt: timeAt(43_100),
      detectedAt: timeAt(41_000),
      detectionMs: 2_100,
      impact: { watchesMoved: 131, watchesEnded: 0, tunnelsEnded: 1, requestsFailed: 0 },
      affected: { count: 0, names: [] },
      evidence: [
        row(42_400, "ping", 612, 500, "suspect: PING unanswered for 612 ms"),
        row(41_400, "dial", 1_000, 1_000, "A new connection got no answer: no SYN was answered in 1000 ms"),
        row(41_000, "ping", 2_013, 2_000, `dead: ${dead}`),
      ],
    },
  ],
  backends: [
    backend({ sinceAgeMs: 273_600_000, requests: { watches: 262, plain: 84, longRunning: 6 } }),
    backend({
      name: "cp-2",
      state: "dead",
      sinceAgeMs: 41_000,
      reason: dead,
      pingP99Ms: 0.9,
      watchLagMs: 0,
      watchDelayMs: 1.2,
      watchDelayResource: "/pods",
      unreachableAPIs: [],
      requests: { watches: 0, plain: 0, longRunning: 0 },
      history: [
        changeAt(3_000_000, "unknown", "ready"),
        changeAt(42_400, "ready", "suspect"),
        changeAt(41_000, "suspect", "dead"),
      ].map((change) => ({ ...change, reason: reasons.get(change.to) ?? "" })),
    }),
  ],
  watches,
  clients,
  leases,
  certificates: [
    { purpose: "serving", name: "kube", notAfter: timeAt(-18e9), leftMs: 18e9, level: "ok", refused: "" },
    {
      purpose: "backend-loopback",
      name: "cp-1",
      notAfter: timeAt(-73e9),
      leftMs: 73e9,
      level: "ok",
      refused: "",
    },
    {
      purpose: "backend-loopback",
      name: "cp-2",
      notAfter: timeAt(-2e8),
      leftMs: 2e8,
      level: "soon",
      refused: "",
    },
  ],
};
