import { sleep } from "../processes.ts";
import type { Scenario } from "../scenario.ts";

export const scenario: Scenario = {
  name: "idle",
  about: "start to first answer; then CPU and memory with nothing to do",
  backend: "live",
  proxies: "fresh",
  metrics: [
    { key: "startMs", title: "start ms", digits: 0 },
    { key: "cpuMs", title: "idle CPU ms/s", digits: 2 },
    { key: "rssMb", title: "RSS MB", digits: 0 },
  ],
  async measure({ proxy, isQuick }) {
    await sleep(1_000);
    const seconds = isQuick ? 2 : 6;
    const before = proxy.fineCpuMs();
    await sleep(seconds * 1_000);
    const cpuMs = (proxy.fineCpuMs() - before) / seconds;
    return { startMs: proxy.startedMs, cpuMs, rssMb: proxy.rssKb() / 1024 };
  },
};
