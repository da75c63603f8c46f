/**
 * Sources of backend addresses: a DNS name or a file. Kubernetes itself is in discover-kubernetes.ts and
 * discover-in-cluster.ts.
 */
import { lookup } from "node:dns/promises";
import type { Clock } from "../base/clock.ts";
import { Failure, failureFrom } from "../base/failure.ts";
import { watchFiles } from "../base/file-watcher.ts";
import { limits } from "../base/limits.ts";
import { readText } from "../base/read-text.ts";
import type { DiscoveryConfig } from "../config/cluster.ts";
import { InClusterSource } from "./discover-in-cluster.ts";
import { ChildSource } from "./discover-kubernetes.ts";
import { type Found, foundAt, foundInFile, type Question } from "./discovered.ts";
import type { Source } from "./discovery.ts";

export type SourceParts = {
  readonly clock: Clock;
  /** The credentials and servers for Kubernetes; read for each lookup. */
  readonly access: () => Pick<Question, "servers" | "caFile" | "serverName">;
};

export function sourceOf(config: DiscoveryConfig, { clock, access }: SourceParts): Source {
  if (config.type === "DNS") return nameSource(config.hostname, config.port);
  if (config.type === "File") return fileSource(config.file, clock);
  const { type: from, kubeconfigFile } = config;
  if (kubeconfigFile === undefined) return new InClusterSource(() => ({ ...access(), from }));
  return new ChildSource(() => ({ ...access(), from, kubeconfigFile }));
}

/** Returns every address of a name as this machine resolves names, including /etc/hosts, which kubeadm's users edit. */
function nameSource(name: string, port: number): Source {
  return {
    from: "DNS",
    async ask() {
      try {
        const answers = await lookup(name, { all: true });
        return answers.map(({ address }) => foundAt(address, port));
      } catch (reason) {
        return new Failure("bad-file", "proxy", `Cannot resolve: ${failureFrom(reason, "proxy").message}`);
      }
    },
    giveUp() {}, // the resolver ends by itself, and no other lookup starts before
    stop() {},
  };
}

/** Pause between checks of a file for changes. */
const fileLookMs = 1000;

/** Returns the present content of a file's list. */
export function readList(file: string): readonly Found[] | Failure {
  const text = readText(file, limits.configBytes);
  if (text instanceof Failure) return new Failure("bad-file", "proxy", `"${file}" ${text.message}`);
  return foundInFile(text, file);
}

function fileSource(file: string, clock: Clock): Source {
  return {
    from: "File",
    ask: () => Promise.resolve(readList(file)),
    watch: (run) => watchFiles([file], { clock, intervalMs: fileLookMs, onChange: run }),
    giveUp() {},
    stop() {},
  };
}
