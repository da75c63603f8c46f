import { lookup } from "node:dns/promises";
import { type Clock, wallClock } from "../../base/clock.ts";
import { Failure, failureFrom } from "../../base/failure.ts";
import { watchFiles } from "../../base/file-watcher.ts";
import { limits } from "../../base/limits.ts";
import { readText } from "../../base/read-text.ts";
import type { DiscoveryConfig } from "../config/cluster.ts";
import { type Discovered, foundAt, foundInFile } from "./discovered.ts";
import type { Source } from "./discovery.ts";
import { transportOf } from "./kubernetes-child.ts";
import { addressesInLeases, addressesInSlice, ownSlice, pageIn, peerAddress } from "./kubernetes-objects.ts";
import { discoveryLimits } from "./limits.ts";
import { type Access, firstAnswer, type Transport } from "./transport.ts";

export type SourceParts = {
  readonly clock: Clock;
  /** Returns the apiservers that are in use now, and how their certificates are verified. Called by each lookup. */
  readonly access: () => Access;
};

export function sourceOf(config: DiscoveryConfig, { clock, access }: SourceParts): Source {
  if (config.type === "DNS") return nameSource(config.hostname, config.port);
  if (config.type === "File") return fileSource(config.file, clock);
  return kubernetesSource(config.type, transportOf(config.kubeconfigFile, access, "discovery"), access);
}

const leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
const ofApiservers = "labelSelector=apiserver.kubernetes.io%2Fidentity%3Dkube-apiserver";

const objects = {
  EndpointSlice: {
    path: `/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/${ownSlice}`,
    read: addressesInSlice,
    none: "no endpoint of default/kubernetes is ready",
  },
  Lease: {
    path: `${leases}?${ofApiservers}&limit=${limits.discoveredBackends}`,
    read: addressesInLeases,
    none: `no Lease carries ${peerAddress}`,
  },
};

/** Returns a discovery source that asks the apiservers in use first, and then the server that the credentials name. */
export function kubernetesSource(
  from: "EndpointSlice" | "Lease",
  transport: Transport,
  access: () => Access,
): Source {
  const request = { path: objects[from].path, timeoutMs: discoveryLimits.discoveryAskMs };
  const abort = (): void => transport.abort();
  return {
    from,
    expires: true,
    ask: () => {
      const servers = [...access().servers.slice(0, discoveryLimits.discoveryServers - 1), transport.own];
      const asked = from === "Lease" ? allPages(transport) : transport;
      return firstAnswer(asked, servers, request, (answer) => foundIn(answer, from));
    },
    giveUp: abort,
    stop: abort,
  };
}

/** Returns a transport that reads all pages of a list, and returns them as one. */
function allPages(transport: Transport): Pick<Transport, "ask"> {
  return {
    ask: async (server, request) => {
      const items: unknown[] = [];
      const most = discoveryLimits.leasePages * limits.discoveredBackends;
      for (let next = ""; items.length < most; ) {
        const path = next === "" ? request.path : `${request.path}&continue=${encodeURIComponent(next)}`;
        // oxlint-disable-next-line no-await-in-loop
        const outcome = await transport.ask(server, { ...request, path });
        if (outcome instanceof Failure) return outcome;
        const read = pageIn(outcome.answer);
        items.push(...read.items);
        next = read.items.length === 0 ? "" : read.next;
        if (next === "" && items.length <= most) return { answer: { items } };
      }
      throw new Error(`more than ${most} Leases have the label of the apiservers`);
    },
  };
}

/** @throws {Error} if `answer` is not the expected object, or has no usable address */
function foundIn(answer: unknown, from: "EndpointSlice" | "Lease"): readonly Discovered[] {
  const { read, none } = objects[from];
  const addresses: ReturnType<typeof addressesInSlice> = read(answer, wallClock.wall());
  if (addresses.length === 0) throw new Error(`knows no apiserver: ${none}`);
  return addresses.map(({ host, port, zone }) => foundAt(host, port, zone));
}

/** Returns the addresses of a name as this machine resolves it, and as a dial does. */
export function addressesOf(name: string): Promise<readonly { readonly address: string }[]> {
  return lookup(name, { all: true });
}

/** Returns a source that resolves a name as this machine does: /etc/hosts, which operators edit, comes first. */
export function nameSource(name: string, port: number): Source {
  return {
    from: "DNS",
    async ask() {
      try {
        const answers = await addressesOf(name);
        return answers.map(({ address }) => foundAt(address, port));
      } catch (reason) {
        return new Failure("bad-file", "proxy", `Cannot resolve: ${failureFrom(reason, "proxy").message}`);
      }
    },
    giveUp() {}, // The resolver has its own timeout, and no other lookup starts before this one ends.
    stop() {},
  };
}

const fileLookMs = 1000;

export function readList(file: string): readonly Discovered[] | Failure {
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
