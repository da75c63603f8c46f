/**
 * A proxy in front of embedded apiservers on real sockets, with clients at separate loopback addresses, and access to
 * the proxy's JSON API.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Encoding } from "../../demo/apiserver/apiserver.ts";
import { newCluster } from "../../demo/apiserver/cluster.ts";
import { Embedded } from "../../demo/apiserver/embedded.ts";
import type { Store } from "../../demo/objects/store.ts";
import { DemoClient } from "../../demo/story/client.ts";
import { wallClock } from "../../src/base/clock.ts";
import { Failure } from "../../src/base/failure.ts";
import { Journal } from "../../src/events/journal.ts";
import { Log } from "../../src/ops/admin/events/log.ts";
import { adminLimits } from "../../src/ops/admin/http/limits.ts";
import { explain } from "../../src/ops/cli/client/explain.ts";
import type { Pair } from "../../src/ops/pki/pki.ts";
import { KeptScreen } from "./api-server.ts";
import { testPki } from "./pki.ts";
import { type Firing, isMissing, seriesOf, wrongAlerts } from "./promtool.ts";
import { type ProxyOptions, startProxy, type TestProxy } from "./proxy.ts";

/** The longest time in ms from when a cause is visible on the wire until its incident is open. */
export const foundMs = 5000;

/** An incident as the JSON API returns it (docs/admin-api.md). */
export type Shown = {
  readonly id: number;
  readonly kind: string;
  readonly state: string;
  readonly subject: string;
  readonly backend: string;
  readonly summary: string;
  readonly impact: { readonly watchesMoved: number; readonly requestsFailed: number };
  readonly affected: { readonly count: number; readonly names: readonly string[] };
  readonly evidence: readonly { readonly detector: string; readonly text: string }[];
};

type Options = ProxyOptions & {
  readonly encodingFor?: (accept: string) => Encoding | undefined;
  readonly loopback?: Pair;
};

export class Stage {
  readonly proxy: TestProxy;
  readonly store: Store;
  readonly embedded: readonly Embedded[];
  readonly #stops: (() => void | Promise<void>)[];
  readonly #callers: DemoClient[] = [];

  private constructor(
    proxy: TestProxy,
    store: Store,
    embedded: readonly Embedded[],
    stops: (() => void | Promise<void>)[],
  ) {
    this.proxy = proxy;
    this.store = store;
    this.embedded = embedded;
    this.#stops = stops;
  }

  static async start({ encodingFor, loopback, ...options }: Options = {}): Promise<Stage> {
    const { authority, serving } = await testPki();
    const store = newCluster(wallClock);
    const stops: (() => void | Promise<void>)[] = [];
    const embedded: Embedded[] = [];
    const targets = await Promise.all(
      ["cp-1", "cp-2"].map(async (name) => {
        const parts = { name, store, clock: wallClock };
        const more = encodingFor === undefined ? {} : { encodingFor };
        const shown = loopback === undefined || name === "cp-1" ? {} : { loopback };
        const host = new Embedded({ ...parts, ...more, ...shown, pair: serving });
        embedded.push(host);
        const port = await host.start();
        if (port instanceof Failure) throw new Error(port.message);
        stops.push(() => host.stop());
        return { name, port, ca: authority.certificate };
      }),
    );
    const proxy = await startProxy({ ...options, backends: 0, targets });
    const stage = new Stage(proxy, store, embedded, stops);
    await stage.#ready();
    return stage;
  }

  caller(fields: Record<string, string>, localAddress = "127.0.0.1"): DemoClient {
    const { port, ca } = this.proxy;
    const own = { authorization: "Bearer test", ...fields };
    const caller = new DemoClient({ port, ca, fields: own, localAddress, withinMs: 20_000 });
    this.#callers.push(caller);
    return caller;
  }

  async incidents(query = ""): Promise<readonly Shown[]> {
    const { items } = await this.#get(`incidents?limit=500&${query}`);
    return items as readonly Shown[];
  }

  /** Waits for an incident of this kind, and returns it with the time in ms since `since`. */
  async found(kind: string, since: number): Promise<{ readonly incident: Shown; readonly ms: number }> {
    for (;;) {
      const [incident] = await this.incidents(`kind=${kind}`);
      const ms = performance.now() - since;
      if (incident !== undefined) return { incident, ms };
      if (ms > 4 * foundMs) throw new Error(`No ${kind}: ${JSON.stringify(await this.incidents())}`);
      await sleep(25);
    }
  }

  async ended(kind: string): Promise<void> {
    for (let tries = 0; tries < 800; tries += 1) {
      if ((await this.incidents(`kind=${kind}&state=active`)).length === 0) return;
      await sleep(25);
    }
    throw new Error(`${kind} does not end`);
  }

  /** Returns the output of `watchkeeper explain` for this incident. */
  async explained({ id }: Shown): Promise<string> {
    const screen = new KeptScreen({ WATCHKEEPER_ADMIN: this.proxy.running.apiAddress });
    const code = await explain([String(id)], screen);
    return code === 0 ? screen.out : `exit code ${code}: ${screen.complaints}`;
  }

  /** Returns the JSON log lines for the openings of incidents of this kind; "" if there are none. */
  logged(kind: string): string {
    const lines: string[] = [];
    const journal = new Journal(wallClock);
    const out = { write: (text: string) => void lines.push(text), on() {}, writableLength: 0 };
    const log = new Log(journal, { out, clock: wallClock, format: "JSON", accessLog: "Errors" });
    for (const entry of this.proxy.entries)
      if (entry.kind === "incident.opened" && entry.incident === kind) journal.write(entry);
    log.stop();
    return lines.join("");
  }

  /**
   * Evaluates the alert rules on the present metrics. Returns undefined if exactly the expected alerts fire, or if
   * promtool is not installed.
   */
  async wrongAlerts(...expected: readonly Firing[]): Promise<string | undefined> {
    if (isMissing()) return undefined;
    // A scrape may be as old as this.
    await sleep(adminLimits.scrapeReuseMs);
    const series = seriesOf(await this.metrics(), wallClock.wall() / 1000);
    return wrongAlerts([{ series, expected }]);
  }

  async metrics(): Promise<string> {
    return (await fetch(`http://${this.proxy.running.adminAddress}/metrics`)).text();
  }

  async stop(): Promise<void> {
    for (const caller of this.#callers) caller.close();
    await this.proxy.stop();
    for (const stop of this.#stops) await stop();
  }

  async #get(path: string): Promise<{ readonly items: readonly unknown[] }> {
    const answer = await fetch(`http://${this.proxy.running.apiAddress}/api/v1/${path}`);
    return answer.json() as Promise<{ readonly items: readonly unknown[] }>;
  }

  async #ready(): Promise<void> {
    for (let tries = 0; tries < 800; tries += 1) {
      if ((await this.#get("backends?state=ready")).items.length === 2) return;
      await sleep(25);
    }
    throw new Error("The backends are not ready");
  }
}

export function leaseOf(name: string, holder: string): object {
  const renewTime = new Date().toISOString().replace("Z", "000Z");
  const spec = {
    holderIdentity: holder,
    leaseDurationSeconds: 15,
    renewTime,
    acquireTime: renewTime,
    leaseTransitions: 0,
  };
  return { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { name }, spec };
}
