/**
 * Watches of resources that do not change, while other resources do. The apiservers are restarted one after another,
 * once or twice, and later the one that was restarted first dies. Etcd sends progress notifications every 10 minutes.
 * No watch may end.
 */
import { newCluster } from "../../../demo/apiserver/cluster.ts";
import type { KubeObject } from "../../../demo/objects/json.ts";
import { SimulatedProxy } from "../proxy.ts";
import { Random } from "../random.ts";
import { setSlicesOf } from "../slices.ts";
import { World } from "../world.ts";
import { SimulatedApiserver } from "./apiserver.ts";
import { Attempts } from "./attempts.ts";
import type { Progress } from "./cache.ts";
import { Caller } from "./caller.ts";
import { apps, namespaces, watchedResources } from "./cast.ts";
import { Findings, type Problem } from "./findings.ts";
import { probeOver } from "./probe.ts";
import { Truth } from "./truth.ts";
import { type Company, WatchCall } from "./watch-call.ts";
import { weatherOf } from "./weather.ts";
import { type End, Host, Wires } from "./wires.ts";

export type QuietOptions = {
  readonly progress?: Progress;
  /**
   * The shortest time between two faults, counted from when all backends are ready. Default: 5 s, because a list and a
   * bookmark take up to 2.3 s.
   */
  readonly leastMs?: number;
  /** True if the watched resources are custom resources. An apiserver fills their caches at the first request. */
  readonly isCustom?: boolean;
  readonly trace?: (line: string) => void;
};

export type QuietPlayed = {
  readonly problems: readonly Problem[];
  readonly counts: ReadonlyMap<string, number>;
  /** Number of journal entries about caches to which etcd sends no progress notifications. */
  readonly unnotified: number;
};

export const tenMinutes: Progress = { everyMs: 600_000, isAsked: true };

const quiet = ["configmaps", "pods"] as const;
const readyMs = 60_000;
const stepMs = 250;

export function playQuiet(
  seed: number,
  { progress = tenMinutes, leastMs = 5_000, isCustom = false, trace }: QuietOptions = {},
): QuietPlayed {
  setSlicesOf(seed);
  const random = new Random(seed);
  const world = new World(random);
  const findings = new Findings(world, random, trace);
  const weather = weatherOf(random);
  const wires = new Wires(world, random);
  const store = newCluster(world);
  const truth = new Truth(store, world);
  const calls = new Map<string, WatchCall>();
  const attempts = new Attempts(findings, calls);
  const parts = {
    findings,
    wires,
    store,
    resources: watchedResources,
    attempts,
    progress,
    custom: isCustom ? quiet : [],
  };
  const names = ["cp-1", "cp-2"];
  const apiservers = new Map(names.map((name) => [name, new SimulatedApiserver(name, parts, new Set())]));
  const of = (name: string): SimulatedApiserver => {
    const apiserver = apiservers.get(name);
    if (apiserver === undefined) throw new Error(`No backend ${name}`);
    return apiserver;
  };
  const proxyHost = new Host("proxy");
  const upstream = { ...weather.upstream, loss: 0 };
  const dial = (name: string, accept: (end: End) => void): End =>
    wires.connect(proxyHost, of(name).host, upstream, accept);
  let unnotified = 0;
  const proxy = new SimulatedProxy({
    world,
    backends: names,
    dial: (name) => dial(name, (end) => of(name).accept(end)),
    connections: { streams: 80, warm: 1 },
    isPerClient: false,
    probes: {
      probe: (name, ear) =>
        probeOver(
          dial(name, (end) => of(name).acceptProbe(end)),
          ear,
        ),
      times: { intervalMs: 1_000, timeoutMs: 3_000 },
      random: () => random.next(),
    },
    tell: (entry) => {
      findings.tell(() => JSON.stringify(entry));
      if (entry.kind === "cache.progress_delayed") unnotified += 1;
      if (entry.kind === "internal.error") findings.wrong("thrown", entry.message);
    },
    thrown: (error) => findings.wrong("thrown", String(error)),
  });
  const pass = (ms: number): boolean => world.runUntil(() => false, ms);
  /** Waits until the proxy reports all backends as ready. */
  const settled = (): void => {
    const isReady = (): boolean => proxy.path.backends.views.every(({ state }) => state === "ready");
    for (let ms = 0; ms < readyMs && !isReady(); ms += stepMs) pass(stepMs);
    if (!isReady()) findings.wrong("progress", "a backend is not found well again");
  };
  for (const resource of watchedResources)
    for (const namespace of namespaces) store.put(resource, objectOf(namespace, "first"));
  let isOver = false;
  const company: Company = {
    truth,
    calls,
    judgeEnd: (call, end) => {
      if (!isOver) findings.wrong("ends", `${call.auditId} ended: ${JSON.stringify(end)}`);
    },
    judgeEvent() {},
  };
  settled();
  const open: WatchCall[] = [];
  for (let count = random.whole(4, 10); count > 0; count -= 1) {
    const host = new Host(`client-${count}`);
    const caller = new Caller(host.name, findings, () =>
      wires.connect(host, proxyHost, { ...weather.downstream, loss: 0 }, (end) => proxy.accept(end)),
    );
    const order = {
      interest: {
        resource: random.pick(quiet),
        namespace: random.chance(0.5) ? random.pick(namespaces) : undefined,
        app: random.chance(0.3) ? random.pick(apps) : undefined,
      },
      beginning: { from: "version", version: store.revision } as const,
      wantsBookmarks: random.chance(0.7),
      isProtobuf: random.chance(0.4),
      timeoutSeconds: undefined,
    };
    open.push(new WatchCall(caller, company, order, { event() {}, over() {} }));
  }
  /** Writes objects of a resource that no client watches. */
  const write = (): void => {
    store.put("events", objectOf(random.pick(namespaces), `e-${random.whole(1, 8)}`));
    world.after(random.next() * 500, write);
  };
  write();
  pass(random.whole(1_000, 5_000));
  const [first = "", second = ""] = random.chance(0.5) ? names : names.toReversed();
  const round = [first, second];
  for (const name of random.chance(0.3) ? [...round, ...round] : round) {
    findings.tell(() => `restart of ${name}`);
    of(name).kill();
    pass(random.whole(500, 3_000));
    of(name).restart(random.chance(0.5) ? random.whole(100, 1_000) : 0);
    pass(3_000);
    settled();
    pass(random.whole(leastMs, leastMs + 40_000));
  }
  findings.tell(() => `${first} dies`);
  of(first).kill();
  pass(8_000);
  for (const resource of quiet)
    for (const namespace of namespaces) store.put(resource, objectOf(namespace, "last", random.pick(apps)));
  pass(8_000);
  for (const { auditId, follower } of open)
    if (follower.missing > 0) findings.wrong("progress", `${auditId} lacks ${follower.missing} events`);
  isOver = true;
  for (const call of open) call.cancel();
  return { problems: findings.problems, counts: findings.counts, unnotified };
}

const kinds: Readonly<Record<string, string>> = { configmaps: "ConfigMap", pods: "Pod", events: "Event" };

function objectOf(namespace: string, name: string, app = ""): KubeObject {
  const metadata = {
    name,
    namespace,
    uid: "",
    resourceVersion: "",
    creationTimestamp: "2027-01-15T08:00:00Z",
    labels: app === "" ? {} : { app },
    rest: {},
  };
  return { apiVersion: "v1", kind: kinds["configmaps"] ?? "", metadata, fields: { data: { value: name } } };
}
