/** Leader election as client-go does it: each leader renews a Lease, releases it, and the next leader takes it. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Server } from "../rig/ask.ts";
import { Client } from "./client.ts";

const path = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
/**
 * client-go's own renewal interval. A leader renews only `renewals` times, so that several leaders follow each other
 * within half a minute.
 */
const renewMs = 2_000;
const renewals = 4;

/**
 * The part of a Lease that is written back. Its resourceVersion is the one that was read, so two leaders cannot take
 * the Lease at the same time.
 */
type Lease = { readonly metadata: object; readonly spec: Readonly<Record<string, unknown>> };

export class Elections {
  readonly #server: Server;
  readonly #over: Promise<void>;
  #isOver = false;
  turns = 0;
  renewed = 0;
  /** Reads and writes of the Lease that failed. The next attempt follows, as in client-go. */
  failed = 0;
  /** Longest time between two renewals. A client-go leader that cannot renew for 10 s gives up. */
  longestMs = 0;
  readonly #name: string;
  #renewedAt = 0;

  constructor(server: Server, name = "leader") {
    this.#server = server;
    this.#name = name;
    this.#over = this.#run();
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#over;
  }

  async #run(): Promise<void> {
    const first = new Client(this.#server);
    while ((await first.ask({ method: "POST", path, body: this.#leaseOf("") })).status === 0)
      this.failed += 1;
    first.close();
    for (; !this.#isOver; this.turns += 1) await this.#lead(`manager-${this.turns}`);
  }

  /** Each leader uses a new client, and releases the Lease at the end. */
  async #lead(holder: string): Promise<void> {
    const client = new Client(this.#server);
    for (let times = 0; times < renewals && !this.#isOver; times += 1) {
      await this.#write(client, holder);
      await sleep(renewMs);
    }
    await this.#write(client, "");
    client.close();
  }

  async #write(client: Client, holder: string): Promise<void> {
    const read = await client.ask({ path: `${path}/${this.#name}` });
    const isRead = read.status === 200 && read.ending === "whole";
    const lease = isRead ? (JSON.parse(read.body.toString()) as Lease) : this.#leaseOf(holder);
    const body = { ...this.#leaseOf(holder), metadata: lease.metadata };
    const question = { method: "PUT", path: `${path}/${this.#name}`, body };
    const written = isRead ? await client.ask(question) : read;
    if (isRead && written.status === 200) this.#count();
    else this.failed += 1;
  }

  #count(): void {
    const now = Date.now();
    if (this.renewed > 0) this.longestMs = Math.max(this.longestMs, now - this.#renewedAt);
    this.#renewedAt = now;
    this.renewed += 1;
  }

  #leaseOf(holder: string): Lease & { readonly apiVersion: string; readonly kind: string } {
    const now = new Date().toISOString().replace("Z", "000Z");
    return {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { name: this.#name },
      spec: { holderIdentity: holder, leaseDurationSeconds: 15, renewTime: now, acquireTime: now },
    };
  }
}
