import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Peer } from "../peer.ts";

/** Returns watchkeeper as a peer, from this checkout or another one. `more` overrides parts of its configuration. */
export function watchkeeperAt(name: string, folder: string, more: object = {}): Peer {
  const program = join(folder, "bin/watchkeeper.js");
  const runs = (file: string): readonly string[] => [
    process.execPath,
    "--disable-sigusr1",
    program,
    "run",
    "--config",
    file,
  ];
  const set = Object.keys(more).length === 0 ? "every feature on" : `but for ${JSON.stringify(more)}`;
  const missing = (): string | undefined => {
    const help = spawnSync(process.execPath, [program, "help"], { encoding: "utf8" });
    return /^ +run\b/m.test(help.stdout) ? undefined : `${program} has no command "run"`;
  };
  return {
    name,
    settings: `defaults: ${set}`,
    missing,
    command: (place) => runs(write(place, more)),
    passthrough: {
      name,
      settings: `mode passthrough; ${set}`,
      missing,
      command: (place) => runs(write(place, { ...more, listeners: [passthroughListener(place.port)] })),
    },
  };
}

/**
 * Watchkeeper without the parts that only observe, such as log and metrics (programs/plain.ts), to measure their cost.
 */
export const plain: Peer = {
  name: "watchkeeper-plain",
  settings:
    "no observers: no log, metrics, incidents, API, ledger of clients, locks or time-travel guard; detection and moves as ever",
  missing: () => undefined,
  command(place) {
    const file = write(place, { logging: { accessLog: "None" }, watches: { staleReadGuard: "Disabled" } });
    // The same flags as in bin/watchkeeper.js.
    const flags = ["--disable-sigusr1", "--max-semi-space-size=8"];
    return [process.execPath, ...flags, join(import.meta.dirname, "programs/plain.ts"), file];
  },
};

/** Writes the configuration as JSON, which is also YAML. */
function write(place: Parameters<Peer["command"]>[0], more: object): string {
  const file = join(place.dir, "watchkeeper.yaml");
  writeFileSync(file, JSON.stringify({ ...config(place), ...more }, undefined, 2));
  return file;
}

export function passthroughListener(port: number): object {
  return { name: "bench", address: `127.0.0.1:${port}`, mode: "Passthrough" };
}

export function config(place: Parameters<Peer["command"]>[0]): object {
  return {
    apiVersion: "watchkeeper.dev/v1alpha2",
    kind: "WatchkeeperConfiguration",
    listeners: [
      {
        name: "bench",
        address: `127.0.0.1:${place.port}`,
        tls: { certFile: place.certFile, keyFile: place.keyFile },
      },
    ],
    clusters: [
      {
        name: "default",
        backends: [{ name: "one", url: `https://127.0.0.1:${place.backendPort}` }],
        tls: { caFile: place.caFile, serverName: "localhost" },
      },
    ],
    admin: { metricsAddress: `127.0.0.1:${place.metricsPort}` },
  };
}
