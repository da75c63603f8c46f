/**
 * client-go in processes of its own. Each raw watch (go/informer -watches, in every form) is compared with etcd's
 * record when it stops. So is the store of each informer.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { onLeave } from "../rig/leave.ts";
import { pathOf } from "../rig/parts.ts";
import type { Gone } from "./gone.ts";
import type { Fact, Truth } from "./truth.ts";

type Told = {
  readonly kind: "opened" | "event" | "ended" | "refused";
  readonly watch: number;
  readonly type?: string;
  /** Key of the object: namespace/name. */
  readonly key?: string;
  readonly version?: string;
  readonly at: number;
  readonly form?: string;
  readonly prefix?: string;
  readonly contains?: string;
  readonly side?: string;
  readonly relisted?: boolean;
  readonly how?: string;
};

type Seen = { readonly type: string; readonly key: string; readonly version: number; readonly at: number };

type Held = {
  readonly form: string;
  readonly prefix: string;
  readonly contains: string;
  readonly side: string;
  readonly from: number;
  readonly seen: Seen[];
  /** Ranges of versions between a 410 and the list after it. No watch delivers the events within them. */
  readonly gaps: { readonly after: number; readonly until: number }[];
};

/** The end of a stream, or a rejected request. `at` is in Unix milliseconds. */
export type StreamEnd = {
  readonly at: number;
  readonly watch: number;
  readonly form: string;
  readonly how: string;
};

export type Late = { readonly at: number; readonly ms: number };

export type Verdict = {
  readonly watches: number;
  readonly events: number;
  readonly missing: number;
  readonly doubled: number;
  readonly reordered: number;
  /** Events that a watch delivered and that etcd does not have. */
  readonly invented: number;
  readonly relists: number;
  /** Number of streams by how they ended. */
  readonly ends: ReadonlyMap<string, number>;
  readonly streamEnds: readonly StreamEnd[];
  /** Milliseconds from etcd's record of a change to the watch's event, sorted. */
  readonly delays: readonly number[];
  /** Events that came more than a second after etcd's record: the time of the record (`at`), and the delay (`ms`). */
  readonly late: readonly Late[];
  /** Texts about the first few errors. */
  readonly examples: readonly string[];
};

class Program {
  readonly process: ChildProcess;
  readonly ended: Promise<void>;
  readonly #leave: () => void;

  /** `features` are client-go's feature gates, which it reads from the environment. */
  constructor(args: readonly string[], features: readonly string[], tell: (line: string) => void) {
    const env = Object.fromEntries(features.map((feature) => `KUBE_FEATURE_${feature}`.split("=")));
    this.process = spawn("setpriv", ["--pdeathsig", "KILL", pathOf("informer"), ...args], {
      stdio: ["ignore", "pipe", "ignore"],
      env: { ...process.env, ...env },
    });
    this.#leave = onLeave(() => this.process.kill("SIGKILL"));
    const { promise, resolve } = Promise.withResolvers<void>();
    this.ended = promise;
    if (this.process.stdout !== null) {
      const lines = createInterface({ input: this.process.stdout });
      lines.on("line", tell);
      lines.on("close", () => {
        this.#leave();
        resolve();
      });
    }
  }

  async stop(): Promise<void> {
    this.process.kill("SIGTERM");
    await this.ended;
  }
}

export class GoWatches {
  readonly #program: Program;
  readonly #gone: Gone["ask"];
  readonly #held = new Map<number, Held>();
  readonly #ends = new Map<string, number>();
  /** How the last stream of a watch ended, if the watch has delivered no event since. */
  readonly #ended = new Map<number, string>();
  readonly #streamEnds: StreamEnd[] = [];
  #relists = 0;

  /**
   * `gone` is called for every 410, with the resource and namespace (such as `configmaps/namespace/`) and the version.
   */
  constructor(
    kubeconfig: string,
    { namespaces, count, gone }: { namespaces: readonly string[]; count: number; gone: Gone["ask"] },
  ) {
    this.#gone = gone;
    const args = [`-kubeconfig=${kubeconfig}`, `-namespace=${namespaces.join(",")}`];
    const all = [...args, `-watches=${count}`, "-for=24h"];
    this.#program = new Program(all, ["ClientsAllowCBOR=true"], (line) =>
      this.#take(JSON.parse(line) as Told),
    );
  }

  get open(): number {
    return this.#held.size;
  }

  #count(how: string, more: number): void {
    const count = (this.#ends.get(how) ?? 0) + more;
    if (count > 0) this.#ends.set(how, count);
    else this.#ends.delete(how);
  }

  #take(told: Told): void {
    const held = this.#held.get(told.watch);
    const version = Number(told.version ?? 0);
    if (told.kind === "event") {
      this.#ended.delete(told.watch);
      held?.seen.push({ type: told.type ?? "", key: told.key ?? "", version, at: told.at });
    } else if (told.kind === "opened" && held !== undefined) {
      this.#relists++;
      held.gaps.push({ after: held.seen.at(-1)?.version ?? held.from, until: version });
    } else if (told.kind === "opened") {
      const { form = "", prefix = "", contains = "", side = "" } = told;
      this.#held.set(told.watch, { form, prefix, contains, side, from: version, seen: [], gaps: [] });
    } else {
      const how = `${told.kind}: ${told.how ?? ""}${held?.form === "cbor" ? " (cbor)" : ""}`;
      this.#streamEnds.push({ at: told.at, watch: told.watch, form: held?.form ?? "", how });
      // The proxy ended the stream so that the client's own resume request got the 410. That is correct, so it is not
      // counted as an unexpected EOF.
      if (how.startsWith("ended: error 410")) this.#gone(held?.prefix ?? "", version, `watch ${told.watch}`);
      if (how.startsWith("ended: error 410") && this.#ended.get(told.watch) === "ended: EOF") {
        this.#count("ended: EOF", -1);
        this.#count("ended: for a true 410", 1);
      }
      this.#count(how, 1);
      this.#ended.set(told.watch, how);
    }
  }

  /** True if each watch has delivered the last event that it should have delivered by now. */
  hasAll(truth: Truth): boolean {
    return [...this.#held.values()].every(({ prefix, contains, side, from, seen }) => {
      const told = seen.at(-1)?.version ?? 0;
      return truth.of(prefix, contains, Math.max(from, told), side).length === 0;
    });
  }

  /** Ends the watches and compares all their events with etcd's record. */
  async stop(truth: Truth): Promise<Verdict> {
    // Kubernetes Events expire at any time, so a change of the last second may still be in transit.
    const dueAt = Date.now() - 1_000;
    await this.#program.stop();
    const each = [...this.#held.entries()].map(([number, held]) => judge(number, held, truth, dueAt));
    const sum = (of: (one: Judged) => number): number => each.reduce((total, one) => total + of(one), 0);
    return {
      watches: each.length,
      events: sum(({ events }) => events),
      missing: sum(({ missing }) => missing),
      doubled: sum(({ doubled }) => doubled),
      reordered: sum(({ reordered }) => reordered),
      invented: sum(({ invented }) => invented),
      relists: this.#relists,
      ends: this.#ends,
      streamEnds: this.#streamEnds,
      delays: each.flatMap(({ delays }) => delays).toSorted((one, other) => one - other),
      late: each.flatMap(({ late }) => late),
      examples: each.flatMap(({ examples }) => examples).slice(0, 20),
    };
  }
}

type Judged = Pick<
  Verdict,
  "events" | "missing" | "doubled" | "reordered" | "invented" | "delays" | "late" | "examples"
>;

function word({ type, version }: Fact | Seen, key: string): string {
  return `${type} ${key} at ${version}`;
}

/** Every change that was written before `dueAt` must have been delivered. */
function judge(number: number, held: Held, truth: Truth, dueAt: number): Judged {
  const { form, prefix, contains, side, from, seen, gaps } = held;
  const resource = prefix.split("/")[0] ?? "";
  const facts = new Map(truth.of(prefix, contains, from, side).map((fact) => [word(fact, fact.key), fact]));
  const told = new Set<string>();
  const delays: number[] = [];
  const late: Late[] = [];
  const examples: string[] = [];
  const counts = { missing: 0, doubled: 0, reordered: 0, invented: 0 };
  const note = (what: keyof typeof counts, which: string): void => {
    counts[what]++;
    examples.push(`watch ${number} (${form}): ${what} ${which}`);
  };
  let last = from;
  for (const one of seen) {
    const name = word(one, `${resource}/${one.key}`);
    const fact = facts.get(name);
    if (told.has(name)) note("doubled", name);
    else if (one.version < last) note("reordered", `${name} after ${last}`);
    if (fact === undefined) note("invented", name);
    else if (!told.has(name)) {
      const ms = Math.max(0, one.at - fact.at);
      delays.push(ms);
      if (ms > 1_000) late.push({ at: fact.at, ms });
    }
    told.add(name);
    last = Math.max(last, one.version);
  }
  const isInGap = (version: number): boolean =>
    gaps.some(({ after, until }) => version > after && version <= until);
  for (const [name, { version, at }] of facts)
    if (at <= dueAt && !told.has(name) && !isInGap(version)) note("missing", name);
  return { events: seen.length, ...counts, delays, late, examples };
}

export type Summary = {
  readonly kind: "summary";
  readonly lists: number;
  readonly streamed: number;
  readonly watches: number;
  readonly fails: number;
  readonly backwards: number;
  readonly objects: Readonly<Record<string, string>>;
};

/**
 * `watchList`: the informer requests its initial state as a watch, as client-go does since 1.35, instead of as a list.
 */
export type InformerForm = { readonly content: "json" | "protobuf"; readonly watchList: boolean };

/** One client-go informer on the ConfigMaps of a namespace. */
export class Informer {
  readonly namespace: string;
  readonly #program: Program;
  #summary: Summary | undefined;

  constructor(kubeconfig: string, namespace: string, { content, watchList }: InformerForm) {
    this.namespace = namespace;
    const args = [`-kubeconfig=${kubeconfig}`, `-namespace=${namespace}`, `-content=${content}`, "-for=24h"];
    this.#program = new Program(args, [`WatchListClient=${watchList}`], (line) => {
      const told = JSON.parse(line) as { readonly kind: string };
      if (told.kind === "summary") this.#summary = told as Summary;
    });
  }

  async stop(): Promise<Summary> {
    await this.#program.stop();
    if (this.#summary === undefined) throw new Error(`The informer of ${this.namespace} died`);
    return this.#summary;
  }
}
