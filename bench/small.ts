/**
 * Sends small requests as fast as possible, from C clients with S concurrent streams each. The scenarios small-CxS use
 * it.
 */
import { type Amount, h2load, type Loaded } from "./h2load.ts";
import type { Proxy } from "./peer.ts";
import type { Scenario } from "./scenario.ts";

type SmallLoad = {
  /** Number of clients: a multiple of the number of proxies. */
  readonly clients: number;
  /** Number of concurrent streams of each client. */
  readonly streams: number;
  readonly seconds: number;
};

export type SmallFigures = {
  /** CPU time of a request, in µs. */
  readonly cpuUs: number;
  /** Requests a second. */
  readonly perSecond: number;
};

export function smallRequests(clients: number, streams: number): Scenario {
  return {
    name: `small-${clients}x${streams}`,
    about: `2 kB GETs, ${clients} clients × ${streams} streams, as fast as they go`,
    backend: "static",
    proxies: "kept",
    metrics: [
      { key: "cpuUs", title: "CPU µs/request", digits: 1 },
      { key: "perSecond", title: "requests/s", digits: 0, isGain: true },
    ],
    measure: ({ proxy, isQuick }) => smallCost([proxy], { clients, streams, seconds: isQuick ? 1 : 3 }),
  };
}

/**
 * Returns the CPU time of a request and the throughput of the proxies together. Each proxy serves its part of the
 * clients, at the same time as the others. To exclude the TLS handshakes, subtracts the CPU time of a run in which each
 * client sends only one request.
 */
export async function smallCost(proxies: readonly Proxy[], load: SmallLoad): Promise<SmallFigures> {
  const clients = load.clients / proxies.length;
  const cpuMs = (): number => sum(proxies.map((proxy) => proxy.cpuMs()));
  const run = (amount: Amount): Promise<Loaded[]> =>
    Promise.all(proxies.map(({ port }) => h2load({ port, clients, streams: load.streams, ...amount })));
  const before = cpuMs();
  const greetings = await run({ requests: clients });
  const between = cpuMs();
  const runs = await run({ seconds: load.seconds });
  const cpu = cpuMs() - between - (between - before);
  const requests = sum(runs.map((each) => each.requests)) - sum(greetings.map((each) => each.requests));
  return { cpuUs: (cpu * 1000) / requests, perSecond: sum(runs.map(({ perSecond }) => perSecond)) };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
