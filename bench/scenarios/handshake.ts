import type { Scenario } from "../scenario.ts";

export const scenario: Scenario = {
  name: "handshake",
  about: "full TLS 1.3 handshakes with P-256, 8 at once, until the server's SETTINGS have come",
  backend: "static",
  proxies: "kept",
  metrics: [
    { key: "cpuMs", title: "CPU ms/handshake", digits: 2 },
    { key: "perSecond", title: "handshakes/s", digits: 0, isGain: true },
  ],
  async measure({ proxy, rig, isQuick }) {
    const wanted = String(isQuick ? 200 : 1000);
    const before = proxy.cpuMs();
    const { count = 0, seconds = 0 } = await rig.ask([
      "shake",
      "-to",
      `localhost:${proxy.port}`,
      "-count",
      wanted,
    ]);
    return { cpuMs: (proxy.cpuMs() - before) / count, perSecond: count / seconds };
  },
};
