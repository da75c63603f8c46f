import { sleep } from "../processes.ts";
import type { Scenario } from "../scenario.ts";

/** Wait, in ms, before RSS is read. Without the wait, RSS would include garbage that the next collection frees. */
const settleMs = 3_000;
/**
 * Number of watches that the load opens each second. For one backend, a proxy opens 50 connections a second with room
 * for 80 watches each, so it can open 4,000 watches a second. At a higher rate, watches would only wait for
 * connections.
 */
const opensPerSecond = 3_000;

export const scenario: Scenario = {
  name: "fanout",
  about: "50,000 watches on 500 clients through one process; then events of 1 kB to all of them, twice",
  backend: "live",
  proxies: "fresh",
  metrics: [
    { key: "kb", title: "KB/watch", digits: 1 },
    { key: "rssMb", title: "RSS MB", digits: 0 },
    { key: "openUs", title: "CPU µs/watch opened", digits: 1 },
    { key: "cpuUs", title: "CPU µs/event", digits: 1 },
    { key: "allMs", title: "ms to all", digits: 0 },
  ],
  async measure({ proxy, rig, isQuick }) {
    const [clients, each, rounds] = isQuick ? [20, 50, 2] : [500, 100, 2];
    const words = ["watch", "-to", `localhost:${proxy.port}`, "-control", rig.control];
    const numbers = { clients, watches: each, pace: opensPerSecond };
    const load = rig.talk([
      ...words,
      ...Object.entries(numbers).flatMap(([key, value]) => [`-${key}`, String(value)]),
    ]);
    try {
      await load.next();
      await sleep(settleMs);
      const [before, cpuBefore] = [proxy.rssKb(), proxy.cpuMs()];
      load.say("open");
      await load.next();
      const openUs = ((proxy.cpuMs() - cpuBefore) * 1000) / (clients * each);
      await sleep(settleMs);
      const rssKb = proxy.rssKb();
      const cpuOpened = proxy.cpuMs();
      load.say(`fanout ${rounds}`);
      const { events, seconds } = await load.next();
      const cpuUs = ((proxy.cpuMs() - cpuOpened) * 1000) / Number(events);
      const kb = (rssKb - before) / (clients * each);
      return { kb, rssMb: proxy.rssKb() / 1024, openUs, cpuUs, allMs: (Number(seconds) * 1000) / rounds };
    } finally {
      await load.stop();
    }
  },
};
