import { h2load } from "../h2load.ts";
import type { Scenario } from "../scenario.ts";

const megabytes = 2;

export const scenario: Scenario = {
  name: "upload",
  about: `POSTs of ${megabytes} MB, 8 clients`,
  backend: "static",
  proxies: "kept",
  metrics: [
    { key: "cpuMs", title: "CPU ms/100 MB", digits: 0 },
    { key: "perSecond", title: "MB/s", digits: 0, isGain: true },
  ],
  async measure({ proxy, rig, isQuick }) {
    const before = proxy.cpuMs();
    const { uploadFile } = rig;
    const load = { port: proxy.port, clients: 8, streams: 1, path: "/api/v1/configmaps", uploadFile };
    const run = await h2load({ ...load, requests: isQuick ? 40 : 400 });
    const moved = run.requests * megabytes;
    return { cpuMs: ((proxy.cpuMs() - before) * 100) / moved, perSecond: run.perSecond * megabytes };
  },
};
