import { sleep } from "../processes.ts";
import type { Scenario } from "../scenario.ts";

export const scenario: Scenario = {
  name: "idle-clients",
  about: "2,000 clients that have asked once and stay: memory each",
  backend: "live",
  proxies: "fresh",
  metrics: [{ key: "kb", title: "KB/client", digits: 0 }],
  async measure({ proxy, rig, isQuick }) {
    const count = isQuick ? 200 : 2_000;
    const before = proxy.rssKb();
    const clients = rig.talk(["idle", "-to", `localhost:${proxy.port}`, "-clients", String(count)]);
    try {
      await clients.next();
      await sleep(2_000);
      return { kb: (proxy.rssKb() - before) / count };
    } finally {
      await clients.stop();
    }
  },
};
