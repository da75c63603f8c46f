import { h2load } from "../h2load.ts";
import { mediumPath } from "../peer.ts";
import type { Scenario } from "../scenario.ts";

export const scenario: Scenario = {
  name: "medium",
  about: "GETs of 100 kB, 16 clients",
  backend: "static",
  proxies: "kept",
  metrics: [
    { key: "cpuUs", title: "CPU µs/request", digits: 0 },
    { key: "perSecond", title: "requests/s", digits: 0, isGain: true },
  ],
  async measure({ proxy, isQuick }) {
    const before = proxy.cpuMs();
    const requests = isQuick ? 200 : 4000;
    const run = await h2load({ port: proxy.port, clients: 16, streams: 1, path: mediumPath, requests });
    return { cpuUs: ((proxy.cpuMs() - before) * 1000) / run.requests, perSecond: run.perSecond };
  },
};
