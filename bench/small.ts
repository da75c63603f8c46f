/**
 * Sends small requests as fast as possible, from C clients with S concurrent streams each. The scenarios small-CxS use
 * it.
 */
import { h2load } from "./h2load.ts";
import type { Figures, Measuring, Scenario } from "./scenario.ts";

/**
 * Measures the CPU time of a request. To exclude the TLS handshakes, it subtracts the CPU time of a run in which each
 * client sends only one request.
 */
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
    measure: (measuring) => measure(clients, streams, measuring),
  };
}

async function measure(clients: number, streams: number, { proxy, isQuick }: Measuring): Promise<Figures> {
  const load = { port: proxy.port, clients, streams };
  const before = proxy.cpuMs();
  const greeting = await h2load({ ...load, requests: clients });
  const between = proxy.cpuMs();
  const run = await h2load({ ...load, seconds: isQuick ? 1 : 3 });
  const cpu = proxy.cpuMs() - between - (between - before);
  return { cpuUs: (cpu * 1000) / (run.requests - greeting.requests), perSecond: run.perSecond };
}
