/**
 * Watches that are encoded in CBOR, which watchkeeper does not decode. So such a watch may end when its own apiserver
 * fails, but must survive the failure of any other apiserver.
 */
import type { ClientHttp2Stream } from "node:http2";
import { Client } from "../load/client.ts";
import type { StreamEnd } from "../load/go-watches.ts";
import type { Apiserver } from "../rig/apiserver.ts";
import type { Server } from "../rig/ask.ts";

const count = 6;
const path = "/api/v1/namespaces/storm-0/configmaps?watch=true&resourceVersion=0";
/** How long after the end of a fault an end of a watch still counts as caused by it. */
const graceMs = 2_000;

type Open = { readonly client: Client; readonly stream: ClientHttp2Stream; readonly address: string };

/** An apiserver's fault, until the proxy sees all apiservers as ready again. Unix milliseconds. */
export type Fault = { readonly name: string; readonly from: number; readonly until: number };

export class CborWatches {
  readonly #server: Server;
  readonly #open: Open[] = [];
  /** Number of watches that ended when their own apiserver failed. */
  ended = 0;

  constructor(server: Server) {
    this.#server = server;
  }

  /** Opens as many watches as are missing, and records which apiserver serves each. */
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
      // The proxy sends all requests of a client to the same apiserver, so this one also serves the watch.
      this.#open.push({ client, stream, address: await client.backend() });
    }
  }

  /** Called after a fault of this apiserver. Returns an error text if a watch of the other apiserver ended. */
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

/**
 * Returns the ends of client-go's CBOR watches that no fault explains: ends outside of faults, and each end after the
 * first one of a watch during the same fault.
 */
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
