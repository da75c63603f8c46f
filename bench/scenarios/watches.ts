import { sleep } from "../processes.ts";
import type { Scenario } from "../scenario.ts";

/** Wait, in ms, before RSS is read. Without the wait, RSS would include garbage that the next collection frees. */
const settleMs = 2_000;

export const scenario: Scenario = {
  name: "watches",
  about:
    "5,000 watches on 50 clients: memory each beyond its client, in a proxy that has served before; then events of 1 kB to all of them",
  backend: "live",
  proxies: "fresh",
  metrics: [
    { key: "kb", title: "KB/watch", digits: 1 },
    { key: "cpuUs", title: "CPU µs/event", digits: 1 },
    { key: "perSecond", title: "events/s", digits: 0, isGain: true },
  ],
  async measure({ proxy, rig, isQuick }) {
    const perClient = isQuick ? 10 : 100;
    const words = [
      "watch",
      "-to",
      `localhost:${proxy.port}`,
      "-control",
      rig.control,
      "-watches",
      String(perClient),
    ];
    const clients = rig.talk(words);
    try {
      await clients.next();
      await sleep(settleMs);
      const before = proxy.rssKb();
      clients.say("open");
      await clients.next();
      await sleep(settleMs);
      const kb = (proxy.rssKb() - before) / (50 * perClient);
      const cpuBefore = proxy.cpuMs();
      clients.say(`fanout ${isQuick ? 5 : 40}`);
      const { events, seconds } = await clients.next();
      const cpuUs = ((proxy.cpuMs() - cpuBefore) * 1000) / Number(events);
      return { kb, cpuUs, perSecond: Number(events) / Number(seconds) };
    } finally {
      await clients.stop();
    }
  },
};
