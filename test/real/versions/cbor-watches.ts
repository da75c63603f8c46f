/**
 * Watches that are encoded in CBOR. watchkeeper does not decode them, so such a watch may end when its own apiserver fails,
 * and must live through the failure of any other.
 */
import type { ClientHttp2Stream } from "node:http2";
import { Client } from "../load/client.ts";
import type { StreamEnd } from "../load/go-watches.ts";
import type { Apiserver } from "../rig/apiserver.ts";
import type { Server } from "../rig/ask.ts";

const count = 6;
const path = "/api/v1/namespaces/storm-0/configmaps?watch=true&resourceVersion=0";
/** An end that reaches a client later than the fault that caused it is over. */
const graceMs = 2_000;

type Open = { readonly client: Client; readonly stream: ClientHttp2Stream; readonly address: string };

/** An apiserver's fault, until the proxy takes all apiservers for ready again. Milliseconds since the epoch. */
export type Fault = { readonly name: string; readonly from: number; readonly until: number };

export class CborWatches {
  readonly #server: Server;
  readonly #open: Open[] = [];
  /** That ended with their own apiserver. */
  ended = 0;

  constructor(server: Server) {
    this.#server = server;
  }

  /** Opens as many as are missing, each with the apiserver that serves it. */
  async fill(): Promise<void> {
    while (this.#open.length < count) {
      const client = new Client(this.#server);
      const stream = client.open({ path, headers: { accept: "application/cbor" } });
      const type = await new Promise<string>((resolve) => {
        stream.on("response", (head) => resolve(String(head["content-type"])));
        stream.on("close", () => resolve("none"));
      });
      if (!type.startsWith("application/cbor")) throw new Error(`A watch got ${type}, not CBOR`);
      stream.resume();
      // The same client's requests go to the same apiserver.
      this.#open.push({ client, stream, address: await client.backend() });
    }
  }

  /** Called after a fault of this apiserver. Returns what is wrong. */
  judge({ name, address }: Apiserver): string[] {
    const ended = this.#open.filter(({ stream }) => stream.closed || stream.readableEnded);
    for (const one of ended) {
      this.#open.splice(this.#open.indexOf(one), 1);
      one.client.close();
    }
    const others = ended.filter((one) => one.address !== address).length;
    this.ended += ended.length - others;
    return others === 0 ? [] : [`${others} CBOR watches of the other apiserver ended when ${name} failed`];
  }

  close(): void {
    for (const { client } of this.#open) client.close();
  }
}

/** Ends of client-go's CBOR watches that no fault explains: outside of faults, and more than one of a watch at a fault. */
export function unexplained(ends: readonly StreamEnd[], faults: readonly Fault[]): string[] {
  const seen = new Set<string>();
  return ends
    .filter(({ at, watch }) => {
      const fault = faults.find(({ from, until }) => at >= from && at <= until + graceMs);
      if (fault === undefined) return true;
      const first = `${fault.from} ${watch}`;
      const isFirst = !seen.has(first);
      seen.add(first);
      return !isFirst;
    })
    .map(({ watch, how }) => `watch ${watch} (cbor) ended without a failure of its apiserver: ${how}`);
}
