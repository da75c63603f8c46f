/**
 * Records which client holds each Lease of the control plane and of the operators. The Leases are read every second
 * from an apiserver that is ready.
 */
import { ask, type Server } from "../rig/ask.ts";

export type Lease = {
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly spec: {
    readonly holderIdentity?: string;
    readonly leaseDurationSeconds?: number;
    readonly renewTime?: string;
  };
};

/** Leases of apiservers and nodes are only heartbeats, so they are ignored. */
const otherNamespaces = ["kube-node-lease"];
const isOther = /^apiserver-/;

const everyMs = 1_000;
/**
 * Longest accepted time between two reads. It is shorter than the shortest Lease duration, so that no Lease can change
 * its holder twice between two reads.
 */
const unreadMs = 10_000;

export class Leaders {
  /** "kube-system/kube-scheduler: a -> b", or a text that the holder did not renew the Lease in time. */
  readonly changes: string[] = [];
  /** Periods without a successful read, in which a change may have been missed. */
  readonly gaps: string[] = [];
  readonly holders = new Map<string, string>();
  /**
   * Duration of the slowest read. Reads do not go through the proxy, so a slow read shows that the machine or the
   * apiservers are slow.
   */
  slowestMs = 0;
  readonly #lapsed = new Set<string>();
  readonly #server: () => Server;
  readonly #timer: ReturnType<typeof setInterval>;
  #readAt: number;
  /** Why the last failed read failed; "" if none has failed. */
  #reason = "";

  /** `server` returns an apiserver that is ready. */
  constructor(server: () => Server, now = Date.now()) {
    this.#server = server;
    this.#readAt = now;
    this.#timer = setInterval(() => void this.#read(), everyMs);
  }

  async #read(): Promise<void> {
    const at = Date.now();
    try {
      const path = "/apis/coordination.k8s.io/v1/leases";
      const { text, status } = await ask(this.#server(), { path }, 2_000);
      if (status !== 200) throw new Error(`${status} ${text.slice(0, 200)}`);
      this.take((JSON.parse(text) as { readonly items: readonly Lease[] }).items, at);
    } catch (error) {
      this.#reason = String(error);
    }
    this.slowestMs = Math.max(this.slowestMs, Date.now() - at);
  }

  /** Records one read. `at` is when the read began, in Unix milliseconds. */
  take(items: readonly Lease[], at: number): void {
    this.#checkGap(at);
    this.#readAt = Math.max(this.#readAt, at);
    const when = new Date(at).toISOString();
    for (const { metadata, spec } of items) {
      const { name, namespace } = metadata;
      if (otherNamespaces.includes(namespace) || isOther.test(name)) continue;
      const key = `${namespace}/${name}`;
      const { holderIdentity: holder = "", leaseDurationSeconds = 15, renewTime = "" } = spec;
      const before = this.holders.get(key);
      this.holders.set(key, holder);
      if (before !== undefined && before !== holder)
        this.changes.push(`${when} ${key}: ${before} -> ${holder}`);
      const isLapsed = !(at - Date.parse(renewTime) < leaseDurationSeconds * 1_000);
      if (isLapsed && !this.#lapsed.has(key))
        this.changes.push(`${when} ${key}: ${holder} renewed it last at ${renewTime}`);
      if (isLapsed) this.#lapsed.add(key);
      else this.#lapsed.delete(key);
    }
  }

  #checkGap(now: number): void {
    const ms = now - this.#readAt;
    if (ms > unreadMs)
      this.gaps.push(`no Lease was read for ${ms} ms before ${new Date(now).toISOString()}: ${this.#reason}`);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#checkGap(Date.now());
  }
}
