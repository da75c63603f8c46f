import { h2load } from "../h2load.ts";
import type { Scenario } from "../scenario.ts";

const megabytes = 20;

/**
 * The load and the backend, which share a core, do all the TLS work. So connections a second measure that core more
 * than the proxy.
 */
export const scenario: Scenario = {
  name: "passthrough",
  about: `TLS left to the backend: LISTs of ${megabytes} MB, 4 clients; 2 kB answers, 8 clients x 16 streams; connections, 8 at once`,
  backend: "static",
  proxies: "kept",
  isPassthrough: true,
  metrics: [
    { key: "listCpuMs", title: "CPU ms/100 MB", digits: 0 },
    { key: "megabytesPerSecond", title: "MB/s", digits: 0, isGain: true },
    { key: "requestCpuUs", title: "CPU us/request", digits: 1 },
    { key: "connectionCpuMs", title: "CPU ms/connection", digits: 2 },
    { key: "connectionsPerSecond", title: "connections/s", digits: 0, isGain: true },
  ],
  async measure({ proxy, rig, isQuick }) {
    const { port } = proxy;
    const start = proxy.cpuMs();
    const requests = isQuick ? 8 : 60;
    const lists = await h2load({ port, clients: 4, streams: 1, path: "/api/v1/pods", requests });
    const listed = proxy.cpuMs();
    const small = await h2load({ port, clients: 8, streams: 16, seconds: isQuick ? 1 : 3 });
    const asked = proxy.cpuMs();
    const wanted = String(isQuick ? 200 : 1000);
    const shaken = await rig.ask(["shake", "-to", `localhost:${port}`, "-count", wanted]);
    const { count = 0, seconds = 0 } = shaken;
    return {
      listCpuMs: ((listed - start) * 100) / (lists.requests * megabytes),
      megabytesPerSecond: lists.perSecond * megabytes,
      requestCpuUs: ((asked - listed) * 1000) / small.requests,
      connectionCpuMs: (proxy.cpuMs() - asked) / count,
      connectionsPerSecond: count / seconds,
    };
  },
};
