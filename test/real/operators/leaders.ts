/** Who holds the Leases of the control plane and of the operators, read every second from an apiserver that is ready. */
import { ask, type Server } from "../rig/ask.ts";

export type Lease = {
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly spec: {
    readonly holderIdentity?: string;
    readonly leaseDurationSeconds?: number;
    readonly renewTime?: string;
  };
};

/** Names of apiservers and nodes are not of interest. */
const otherNamespaces = ["kube-node-lease"];
const isOther = /^apiserver-/;

const everyMs = 1_000;
/** Below the shortest Lease, so that no Lease can change hands twice between two reads. */
const unreadMs = 10_000;

export class Leaders {
  /** "kube-system/kube-scheduler: a -> b", or that the holder did not renew the Lease in time. */
  readonly changes: string[] = [];
  /** Times without a read, during which a change may have been missed. */
  readonly gaps: string[] = [];
  readonly holders = new Map<string, string>();
  /** Of all reads. They do not go through the proxy: a slow one shows that the machine or the apiservers are slow. */
  slowestMs = 0;
  readonly #lapsed = new Set<string>();
  readonly #server: () => Server;
  readonly #timer: ReturnType<typeof setInterval>;
  #readAt: number;
  /** Why the last read failed. */
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

  /** `at`: when the read began. */
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
