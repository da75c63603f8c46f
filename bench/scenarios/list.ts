import { h2load } from "../h2load.ts";
import type { Scenario } from "../scenario.ts";

const megabytes = 20;

export const scenario: Scenario = {
  name: "list",
  about: `LISTs of ${megabytes} MB, 4 clients`,
  backend: "static",
  proxies: "kept",
  metrics: [
    { key: "cpuMs", title: "CPU ms/100 MB", digits: 0 },
    { key: "perSecond", title: "MB/s", digits: 0, isGain: true },
  ],
  async measure({ proxy, isQuick }) {
    const before = proxy.cpuMs();
    const requests = isQuick ? 8 : 60;
    const run = await h2load({ port: proxy.port, clients: 4, streams: 1, path: "/api/v1/pods", requests });
    const moved = run.requests * megabytes;
    return { cpuMs: ((proxy.cpuMs() - before) * 100) / moved, perSecond: run.perSecond * megabytes };
  },
};
