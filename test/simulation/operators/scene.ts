/**
 * A kubelet's view of a day with operators: they put bad files, wrong certificates and empty lists in place between the
 * faults of apiservers, or during one. The whole process runs in virtual time. Judges that it neither exits nor drains,
 * that no request reaches a backend as another user, that every mistake is named and its end told in time, and that no
 * client notices anything.
 */
import { X509Certificate } from "node:crypto";
import type { Ask } from "../../../demo/apiserver/ask.ts";
import type { Entry } from "../../../src/events/journal.ts";
import { createAuthority } from "../../../src/ops/pki/pki.ts";
import type { ClientPair } from "../../../src/upstream/net/connect.ts";
import type { SimulatedApiserver } from "../watches/apiserver.ts";
import { type DayFault, dayFaults } from "../watches/day-faults.ts";
import type { Problem } from "../watches/findings.ts";
import { Life } from "../watches/life.ts";
import { ScaleModel } from "../watches/scale-model.ts";
import { type Desk, type Mistake, mistakes, type Sign } from "./mistakes.ts";
import { Probed } from "./probed.ts";
import { RealSockets } from "./real-sockets.ts";
import { WholeProxy } from "./whole-proxy.ts";

export type OperatorsOptions = {
  readonly nodes: number;
  readonly seed: number;
  readonly hours: number;
  readonly mistakesPerHour: number;
  /** The mistakes to make; default: all. */
  readonly mistakes?: readonly Mistake[];
  /** False: no apiserver changes its flags, and none fails. Default: true. */
  readonly hasFaults?: boolean;
  /** Called with each mistake and each hour. */
  readonly tell: (line: string) => void;
  readonly trace?: ((line: string) => void) | undefined;
};

export type OperatorsFigures = {
  readonly problems: readonly Problem[];
  readonly counts: ReadonlyMap<string, number>;
  readonly watches: number;
  readonly virtualMs: number;
  readonly mistakes: number;
  readonly faults: number;
  readonly drifts: number;
  /** The longest time from a mistake to its name, and from its mending to the word that it is over. */
  readonly namedMs: number;
  readonly endedMs: number;
  /** The longest time from a change of an apiserver's flags to its name. */
  readonly driftNamedMs: number;
};

const hourMs = 3_600_000;
const startMs = 60_000;
/** In one step, virtual time passes. Then the real sockets of probes and canaries get some turns of the event loop. */
const stepMs = 100;
const turnsPerStep = 3;
const readMs = 60_000;
const checkMs = 60_000;
const mostMs = { named: 10_000, ended: 10_000, well: 120_000, driftNamed: 4_000_000, driftEnded: 15_000 };
/** A mistake without a name, and one that is named, go on for so long at least. */
const [leastMistakeMs, mostMistakeMs] = [15_000, 120_000];
const faultShare = 0.6;
const duringShare = 0.5;
/** A request that was sent before a canary arrives within this time, also after a retransmission. */
const underWayMs = 500;
const recentEntries = 40;
/** In every third hour, the flags of one apiserver change. */
const driftHours = 3;
const driftName = "an apiserver no longer names the front proxy";
/** While it drifts, no backend is removed: clients with certificates need one that takes their identities. */
const removing = /removed/;

export class Operators {
  readonly #options: OperatorsOptions;
  readonly #model: ScaleModel<WholeProxy>;
  readonly #life: Life<WholeProxy>;
  readonly #probed = new Map<string, Probed>();
  readonly #sockets = new RealSockets((port) =>
    this.#probed.values().some((one) => one.port === port && one.answers),
  );
  readonly #most = { named: 0, ended: 0, driftNamed: 0 };
  readonly #counts = { mistakes: 0, faults: 0, drifts: 0 };
  readonly #mistakePlan: Mistake[] = [];
  readonly #faultPlan: DayFault[] = [];
  /** The entries since the present mistake or its mending, and those that are awaited. */
  readonly #awaited = new Set<{ readonly sign: Sign; at: number | undefined }>();
  /** The latest entries of the journal, which are told with a problem. */
  readonly #recent: string[] = [];
  readonly #open = new Map<number, string>();
  #desk: Desk | undefined;
  #isOver = false;
  #toldProblems = 0;
  /** The backend that drifts, when it began, and when the proxy named it. */
  #drift: { readonly backend: string; readonly since: number; namedAt: number | undefined } | undefined;

  constructor(options: OperatorsOptions) {
    this.#options = options;
    const { seed, trace } = options;
    this.#model = new ScaleModel(
      {
        seed,
        isStrict: true,
        isProbed: false,
        checkMs,
        trace,
        hasCertificate: (node) => Number(node.split("-")[1]) % 2 === 0,
        authenticate: (backend, ask, pair) => this.#authenticate(backend, ask, pair),
      },
      (parts) =>
        new WholeProxy({ ...parts, tell: (entry) => this.#told(entry, parts.tell) }, (what) =>
          this.#model.findings.wrong("operators", what),
        ),
    );
    this.#life = new Life(this.#model, readMs);
  }

  async play(): Promise<OperatorsFigures> {
    const { findings, proxy } = this.#model;
    const { world, problems, counts } = findings;
    await this.#start();
    for (let node = 0; node < this.#options.nodes; node += 1) this.#life.enter(startMs / 2);
    this.#life.start();
    await this.#pass(startMs);
    for (let hour = 1; hour <= Math.ceil(this.#options.hours); hour += 1) await this.#hour(hour);
    await this.#endDrift();
    await this.#untilWell("the last mistake");
    for (const what of this.#open.values()) findings.wrong("operators", `an incident is open: ${what}`);
    this.#life.judgeEnd();
    const { named: namedMs, ended: endedMs, driftNamed: driftNamedMs } = this.#most;
    const figures = {
      problems: [...problems],
      counts: new Map(counts),
      watches: this.#model.openWatches,
      virtualMs: world.now(),
      ...this.#counts,
      namedMs,
      endedMs,
      driftNamedMs,
    };
    await this.#stop();
    proxy.clear();
    return figures;
  }

  // --- the whole process ---

  async #start(): Promise<void> {
    const { proxy, apiservers, findings } = this.#model;
    const { wallClock: clock } = proxy;
    const wall = (): number => clock.wall();
    const [clients, frontProxies, backends, strangers] = await Promise.all(
      ["clients", "front-proxy-ca", "backends", "strangers"].map((name) => createAuthority({ name, clock })),
    );
    const old = { ...clock, wall: () => wall() - 20 * 365 * 86_400_000 };
    const expired = await createAuthority({ name: "expired", clock: old });
    if (!clients || !frontProxies || !backends || !strangers) throw new Error("No authorities");
    const serving = backends.issue({ name: "watchkeeper", hosts: ["localhost"] });
    const frontProxy = frontProxies.issue({ name: "front-proxy-client", usage: "client" });
    const urls = new Map<string, string>();
    for (const apiserver of apiservers) {
      const pair = backends.issue({ name: apiserver.name, hosts: ["127.0.0.1"] });
      const clientCas = [frontProxies.certificate, clients.certificate];
      const probed = new Probed({ apiserver, serving: pair, clientCas });
      this.#probed.set(apiserver.name, probed);
      urls.set(apiserver.name, `https://127.0.0.1:${await probed.listen()}`);
    }
    const listed = [...urls].map(([name, url]) => ({ name, url }));
    const config = configOf(listed.slice(0, 1));
    const discovered = (without?: string): string =>
      JSON.stringify(listed.slice(1).filter(({ name }) => name !== without));
    const pki = { clients, frontProxies, backends, strangers, expired, serving, frontProxy };
    const desk: Desk = { proxy, random: findings.random, config, ...pki, discovered, wall };
    this.#desk = desk;
    proxy.ca = backends.certificate;
    proxy.put("watchkeeper.yaml", JSON.stringify(config));
    proxy.put("backends.yaml", discovered());
    proxy.put("clients.crt", clients.certificate);
    proxy.put("backends.crt", backends.certificate);
    for (const [file, { certificate, key }] of Object.entries({ serving, "front-proxy": frontProxy })) {
      proxy.put(`${file}.crt`, certificate);
      proxy.put(`${file}.key`, key);
    }
    await this.#during(proxy.start());
    await this.#untilWell("the start");
  }

  async #stop(): Promise<void> {
    const { proxy } = this.#model;
    // From here on, the process drains because the scene ends.
    this.#isOver = true;
    await this.#during(proxy.stop());
    for (const probed of this.#probed.values()) probed.close();
    this.#sockets.stop();
  }

  // --- time ---

  async #step(ms: number): Promise<void> {
    const { world } = this.#model.findings;
    // Without a callback at its end, the clock would stop at the last callback before it.
    world.at(world.now() + ms, () => {});
    world.runUntil(() => false, ms);
    for (const probed of this.#probed.values()) probed.look();
    await this.#sockets.settle(turnsPerStep);
  }

  async #pass(ms: number): Promise<void> {
    const { world } = this.#model.findings;
    const until = world.now() + ms;
    while (world.now() < until) await this.#step(Math.min(stepMs, until - world.now()));
  }

  /** Lets time pass until `isSo`, or for `most` ms. */
  async #until(isSo: () => boolean, most: number): Promise<boolean> {
    const { world } = this.#model.findings;
    const until = world.now() + most;
    while (!isSo() && world.now() < until) await this.#step(stepMs);
    return isSo();
  }

  async #during<T>(work: Promise<T>): Promise<T> {
    let isDone = false;
    void work.finally(() => (isDone = true)).catch(() => {});
    await this.#until(() => isDone, 60_000);
    return work;
  }

  async #untilWell(after: string): Promise<void> {
    const { proxy, apiservers, findings } = this.#model;
    const names = apiservers.map(({ name }) => name).filter((name) => name !== this.#drift?.backend);
    if (!(await this.#until(() => proxy.isWell(names), mostMs.well)))
      findings.wrong("operators", `${proxy.states} ${mostMs.well} ms after ${after}`);
  }

  async #hour(hour: number): Promise<void> {
    const { world } = this.#model.findings;
    const { mistakesPerHour, hours, tell } = this.#options;
    const beganAt = world.now();
    // The last hour may be a part of one.
    const lastsMs = hourMs * Math.min(1, hours - (hour - 1));
    if (hour % driftHours === 1 && this.#hasFaults) this.#beginDrift();
    for (let slot = 0; slot < mistakesPerHour; slot += 1) {
      await this.#pass(Math.max(0, beganAt + (slot * lastsMs) / mistakesPerHour - world.now()));
      await this.#slot();
      this.#model.truth.forget(900_000);
      this.#model.attempts.forget(900_000);
      if (this.#drift?.namedAt !== undefined) await this.#endDrift();
    }
    await this.#pass(Math.max(0, beganAt + lastsMs - world.now()));
    const { problems } = this.#model.findings;
    tell(`hour ${hour}: ${this.#model.loads.join(" + ")} watches, ${problems.length} problems`);
    for (const { at, what } of problems.slice(this.#toldProblems)) tell(`  ${at} ms: ${what}`);
    this.#toldProblems = problems.length;
  }

  // --- mistakes and faults ---

  get #hasFaults(): boolean {
    return this.#options.hasFaults !== false;
  }

  async #slot(): Promise<void> {
    const { random } = this.#model.findings;
    const hasFault = random.chance(faultShare) && this.#hasFaults;
    const isFirst = hasFault && random.chance(duringShare);
    const endFault = isFirst ? await this.#strike() : undefined;
    if (isFirst) await this.#pass(random.whole(0, 20_000));
    await this.#make(this.#next(this.#mistakePlan, this.#options.mistakes ?? mistakes), async () => {
      if (hasFault && !isFirst) await (await this.#strike())();
      await endFault?.();
    });
    await this.#untilWell("a mistake and a fault");
  }

  /** Makes a mistake, lets `meanwhile` pass, and mends it. */
  async #make({ name, begin }: Mistake, meanwhile: () => Promise<void>): Promise<void> {
    const { findings } = this.#model;
    if (this.#desk === undefined || (this.#drift !== undefined && removing.test(name))) return meanwhile();
    this.#counts.mistakes += 1;
    findings.count(`mistake: ${name}`);
    findings.tell(() => `mistake: ${name}`);
    const made = begin(this.#desk);
    const namedMs = await this.#await(made.named, mostMs.named, `${name}: not named`);
    await this.#pass(findings.random.whole(leastMistakeMs, mostMistakeMs));
    await meanwhile();
    findings.tell(() => `mended: ${name}`);
    made.mend();
    const endedMs = await this.#await(
      made.ended,
      made.endsWithinMs ?? mostMs.ended,
      `${name}: its end is not told`,
    );
    this.#most.named = Math.max(this.#most.named, namedMs);
    if (made.endsWithinMs === undefined) this.#most.ended = Math.max(this.#most.ended, endedMs);
    this.#options.tell(`${name}: named after ${namedMs} ms, over after ${endedMs} ms`);
  }

  /** Waits for an entry of the journal. Returns how long that took. */
  async #await(sign: Sign | undefined, most: number, what: string): Promise<number> {
    if (sign === undefined) return 0;
    const { findings } = this.#model;
    const since = findings.world.now();
    const awaited: { readonly sign: Sign; at: number | undefined } = { sign, at: undefined };
    this.#awaited.add(awaited);
    await this.#until(() => awaited.at !== undefined, most);
    this.#awaited.delete(awaited);
    if (awaited.at === undefined) {
      findings.wrong("operators", `${what} within ${most} ms`);
      for (const line of this.#recent) this.#options.tell(line);
    }
    return Math.round((awaited.at ?? findings.world.now()) - since);
  }

  /** Begins a fault, and returns a function that lets it last and ends it. */
  async #strike(): Promise<() => Promise<void>> {
    const { findings, apiservers, judge } = this.#model;
    const { random } = findings;
    const fault = this.#next(this.#faultPlan, dayFaults);
    const backend = random.pick(apiservers);
    this.#counts.faults += 1;
    findings.count(`fault: ${fault.name}`);
    findings.tell(() => `fault: ${fault.name} at ${backend.name}`);
    judge.look(backend);
    const look = (one: SimulatedApiserver): void => judge.look(one);
    const parts = { findings, apiservers, backend, revoked: new Set<string>(), clients: [], look };
    const end = fault.begin({ ...parts, ...this.#life.faultParts });
    judge.look(backend);
    const until = findings.world.now() + fault.ms(random);
    return async () => {
      await this.#pass(Math.max(0, until - findings.world.now()));
      judge.look(backend);
      end();
      judge.look(backend);
    };
  }

  /** Returns the next of a plan. None comes again before all others have come. */
  #next<T>(plan: T[], all: readonly T[]): T {
    const { random } = this.#model.findings;
    if (plan.length === 0) plan.push(...all.toSorted(() => random.next() - 0.5));
    const next = plan.pop();
    if (next === undefined) throw new Error("An empty plan");
    return next;
  }

  // --- drift ---

  #beginDrift(): void {
    if (this.#drift !== undefined) return;
    const { findings, apiservers } = this.#model;
    const backend = findings.random.pick(apiservers).name;
    this.#counts.drifts += 1;
    findings.count(`mistake: ${driftName}`);
    findings.tell(() => `drift at ${backend}`);
    this.#drift = { backend, since: findings.world.now(), namedAt: undefined };
    this.#setDrift(true);
  }

  #setDrift(isDrifted: boolean): void {
    const probed = this.#probed.get(this.#drift?.backend ?? "");
    if (probed !== undefined) probed.isDrifted = isDrifted;
  }

  async #endDrift(): Promise<void> {
    const drift = this.#drift;
    if (drift === undefined) return;
    const { findings } = this.#model;
    const leftMs = drift.since + mostMs.driftNamed - findings.world.now();
    if (!(await this.#until(() => drift.namedAt !== undefined, leftMs)))
      findings.wrong("operators", `${driftName}: not named within ${mostMs.driftNamed} ms`);
    this.#most.driftNamed = Math.max(this.#most.driftNamed, (drift.namedAt ?? 0) - drift.since);
    this.#options.tell(`${driftName}: named after ${Math.round((drift.namedAt ?? 0) - drift.since)} ms`);
    this.#setDrift(false);
    const isProven: Sign = (entry) =>
      entry.kind === "incident.ended" && entry.incident === "identity-refused";
    await this.#await(isProven, mostMs.driftEnded, `${driftName}: its end is not told`);
    this.#drift = undefined;
  }

  // --- what the proxy says, and what reaches the backends ---

  #told(entry: Entry, tell: (entry: Entry) => void): void {
    if (this.#isOver) return;
    tell(entry);
    const now = this.#model.findings.world.now();
    // Real sockets make the order of some steps differ between two runs of a seed, so a problem cannot always be replayed.
    this.#recent.push(`  ${Math.round(now)} ms ${JSON.stringify(entry)}`);
    if (this.#recent.length > recentEntries) this.#recent.shift();
    for (const awaited of this.#awaited) if (awaited.sign(entry)) awaited.at ??= now;
    if (entry.kind === "incident.opened") {
      this.#model.findings.count(`incident: ${entry.incident}`);
      this.#open.set(entry.id, `${entry.incident} ${entry.subject}: ${entry.summary}`);
      const drift = this.#drift;
      if (entry.incident === "identity-refused" && drift?.backend === entry.backend) drift.namedAt ??= now;
    }
    if (entry.kind === "incident.ended") {
      this.#open.delete(entry.id);
      // From now on, the backend gets requests again.
      const isMended = this.#probed.get(this.#drift?.backend ?? "")?.isDrifted === false;
      if (isMended && entry.incident === "identity-refused") this.#drift = undefined;
    }
    if (entry.kind === "drain.started") this.#model.findings.wrong("operators", "the process drains");
  }

  /** Returns the request as that of the user that an apiserver sees. */
  #authenticate(backend: string, ask: Ask, pair: ClientPair | undefined): Ask {
    const user = this.#userOf(backend, ask, pair);
    const others = ask.fields.filter(([name]) => name !== "authorization");
    return { ...ask, fields: [...others, ["authorization", `Bearer ${user}`]] };
  }

  #userOf(backend: string, ask: Ask, pair: ClientPair | undefined): string {
    const token = fieldOf(ask, "authorization").replace("Bearer ", "");
    if (pair === undefined) return token;
    const certificate = new X509Certificate(pair.chain);
    const { frontProxies, clients } = this.#desk ?? {};
    const isOf = (authority: typeof clients): boolean =>
      authority !== undefined && certificate.verify(new X509Certificate(authority.certificate).publicKey);
    const name = /CN=(.*)/.exec(certificate.subject)?.[1] ?? "";
    const isFrontProxy = isOf(frontProxies) && name === "front-proxy-client";
    if (!isFrontProxy) return isOf(clients) ? name : "unauthenticated";
    const stated = fieldOf(ask, "x-remote-user");
    const drift = this.#drift;
    if (drift?.backend !== backend || stated === "") return stated === "" ? token : stated;
    this.#model.findings.count("requests to a backend that has drifted");
    // Before the next canary, the proxy cannot know it. Requests that were sent before it may arrive shortly after it.
    const isKnown =
      this.#model.findings.world.now() > (drift.namedAt ?? Number.POSITIVE_INFINITY) + underWayMs;
    return isKnown ? name : stated;
  }
}

function fieldOf(ask: Ask, name: string): string {
  return ask.fields.find(([key]) => key === name)?.[1] ?? "";
}

/** A configuration with the defaults, except that backends are in it and in a file. */
function configOf(backends: readonly object[]): object {
  const tls = { certFile: "serving.crt", keyFile: "serving.key", clientCAFile: "clients.crt" };
  const frontProxy = { certFile: "front-proxy.crt", keyFile: "front-proxy.key" };
  return {
    apiVersion: "watchkeeper.dev/v1alpha2",
    kind: "WatchkeeperConfiguration",
    listeners: [{ name: "kube", address: "127.0.0.1:0", tls, identity: { clientCerts: "FrontProxy" } }],
    clusters: [
      {
        name: "c",
        backends,
        discovery: { type: "File", file: "backends.yaml" },
        tls: { caFile: "backends.crt", frontProxy },
      },
    ],
    // Each probe is a real TLS handshake, and there are tens of thousands of them in a day.
    health: { probe: { interval: "3s" } },
    admin: { address: "127.0.0.1:0", metricsAddress: "127.0.0.1:0" },
    drain: { shutdownDelay: "0s", timeout: "1s" },
  };
}
