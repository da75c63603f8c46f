import { sleep } from "../processes.ts";
import type { Scenario } from "../scenario.ts";

/** Wait, in ms, before RSS is read. Without the wait, RSS would include garbage that the next collection frees. */
const settleMs = 2_000;

export const scenario: Scenario = {
  name: "idle-clients",
  about: "2,000 clients that have asked once and stay: memory each, in a proxy that has served before",
  backend: "live",
  proxies: "fresh",
  metrics: [{ key: "kb", title: "KB/client", digits: 0 }],
  async measure({ proxy, rig, isQuick }) {
    const count = isQuick ? 200 : 2_000;
    const clients = rig.talk(["idle", "-to", `localhost:${proxy.port}`, "-clients", String(count)]);
    try {
      await clients.next();
      await sleep(settleMs);
      const before = proxy.rssKb();
      clients.say("open");
      await clients.next();
      await sleep(settleMs);
      return { kb: (proxy.rssKb() - before) / count };
    } finally {
      await clients.stop();
    }
  },
};
