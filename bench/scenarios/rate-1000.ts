import type { Scenario } from "../scenario.ts";

export const scenario: Scenario = {
  name: "rate-1000",
  about:
    "2 kB GETs at 1,000 a second with random gaps, 50 clients, open loop: latency from the write of each request",
  backend: "static",
  proxies: "kept",
  metrics: [
    { key: "p50", title: "p50 µs", digits: 0 },
    { key: "p99", title: "p99 µs", digits: 0 },
    { key: "p999", title: "p99.9 µs", digits: 0 },
    { key: "cpuUs", title: "CPU µs/request", digits: 0 },
  ],
  async measure({ proxy, rig, isQuick }) {
    const seconds = isQuick ? 1 : 5;
    const before = proxy.cpuMs();
    const said = await rig.ask(["rate", "-to", `localhost:${proxy.port}`, "-seconds", String(seconds)]);
    const { p50 = 0, p99 = 0, p999 = 0, failed = 0, count = 0 } = said;
    if (failed > 0) throw new Error(`${failed} of ${count} requests failed`);
    return { p50, p99, p999, cpuUs: ((proxy.cpuMs() - before) * 1000) / count };
  },
};
