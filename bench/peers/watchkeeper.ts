import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Peer } from "../peer.ts";

/** Watchkeeper as a checkout holds it: this one, or another one to compare with. */
export function watchkeeperAt(name: string, folder: string): Peer {
  const program = join(folder, "bin/watchkeeper.js");
  return {
    name,
    settings: "defaults: every feature on",
    missing() {
      const help = spawnSync(process.execPath, [program, "help"], { encoding: "utf8" });
      return /^ +run\b/m.test(help.stdout) ? undefined : `${program} has no command "run"`;
    },
    command(place) {
      const file = join(place.dir, "watchkeeper.yaml");
      // JSON is YAML.
      writeFileSync(file, JSON.stringify(config(place), undefined, 2));
      return [process.execPath, "--disable-sigusr1", program, "run", "--config", file];
    },
  };
}

export function config(place: Parameters<Peer["command"]>[0]): object {
  return {
    apiVersion: "watchkeeper.dev/v1alpha1",
    kind: "WatchkeeperConfiguration",
    listeners: [
      {
        name: "bench",
        address: `127.0.0.1:${place.port}`,
        tls: { certFile: place.certFile, keyFile: place.keyFile },
      },
    ],
    upstream: {
      backends: [{ name: "one", url: `https://127.0.0.1:${place.backendPort}` }],
      tls: { caFile: place.caFile, serverName: "localhost" },
    },
    admin: { metricsAddress: `127.0.0.1:${place.metricsPort}` },
  };
}
