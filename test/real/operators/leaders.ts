/** Who holds the Leases of the control plane and of the operators, read every second from an apiserver that is ready. */
import { ask, type Server } from "../rig/ask.ts";

type Lease = {
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly spec: { readonly holderIdentity?: string };
};

/** Names of apiservers and nodes are not of interest. */
const otherNamespaces = ["kube-node-lease"];
const isOther = /^apiserver-/;

export class Leaders {
  /** "kube-system/kube-scheduler: a -> b". */
  readonly changes: string[] = [];
  readonly holders = new Map<string, string>();
  readonly #server: () => Server;
  readonly #timer: ReturnType<typeof setInterval>;

  /** `server` returns an apiserver that is ready. */
  constructor(server: () => Server) {
    this.#server = server;
    this.#timer = setInterval(() => void this.read().catch(() => undefined), 1_000);
  }

  async read(): Promise<void> {
    const { text, status } = await ask(
      this.#server(),
      { path: "/apis/coordination.k8s.io/v1/leases" },
      2_000,
    );
    if (status !== 200) return;
    const { items } = JSON.parse(text) as { readonly items: readonly Lease[] };
    for (const { metadata, spec } of items) {
      const { name, namespace } = metadata;
      const holder = spec.holderIdentity ?? "";
      if (otherNamespaces.includes(namespace) || isOther.test(name)) continue;
      const key = `${namespace}/${name}`;
      const before = this.holders.get(key);
      this.holders.set(key, holder);
      if (before !== undefined && before !== holder)
        this.changes.push(`${new Date().toISOString()} ${key}: ${before} -> ${holder}`);
    }
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}
