/** Extracts apiserver addresses from Kubernetes objects. Pure; the objects are as the API returns them. */
import { wallOf } from "../base/clock.ts";

/** The fields read of discovery.k8s.io/v1 EndpointSlice. */
export type EndpointSlice = {
  readonly endpoints?: readonly {
    readonly addresses: readonly string[];
    readonly conditions?: { readonly ready?: boolean };
  }[];
  readonly ports?: readonly { readonly name?: string; readonly port?: number }[];
};

/** The fields read of coordination.k8s.io/v1 Lease. */
export type Lease = {
  readonly metadata?: { readonly annotations?: Readonly<Record<string, string>> };
  readonly spec?: {
    readonly leaseDurationSeconds?: number;
    /** The package returns a string where its types declare a Date. */
    readonly renewTime?: unknown;
  };
};

export type Place = { readonly host: string; readonly port: number };

/** The addresses in the EndpointSlices of default/kubernetes. A missing "ready" means ready, as the API defines. */
export function placesInSlices(slices: readonly EndpointSlice[]): readonly Place[] {
  return slices.flatMap(({ endpoints = [], ports = [] }) => {
    const { port } = ports.find(({ name }) => name === "https") ?? ports[0] ?? {};
    if (port === undefined) return [];
    const ready = endpoints.filter(({ conditions }) => conditions?.ready !== false);
    return ready.flatMap(({ addresses }) => addresses.map((host) => ({ host, port })));
  });
}

/** Each apiserver renews its own Lease every 10 s and publishes its peer address in this annotation. */
export const peerAddress = "kubernetes.io/peer-advertise-address";

/**
 * The addresses in the identity Leases of kube-system. An expired Lease belongs to an apiserver that is gone; it is
 * deleted an hour later. `now` is wall time.
 */
export function placesInLeases(leases: readonly Lease[], now: number): readonly Place[] {
  return leases
    .filter(({ spec }) => !hasRunOut(spec, now))
    .flatMap(({ metadata }) => placeOf(metadata?.annotations?.[peerAddress] ?? ""));
}

function hasRunOut(spec: Lease["spec"], now: number): boolean {
  const renewedAt = wallOf(String(spec?.renewTime));
  const seconds = spec?.leaseDurationSeconds ?? 0;
  return !Number.isNaN(renewedAt) && seconds > 0 && renewedAt + seconds * 1000 < now;
}

/** Parses "10.0.0.11:6443" or "[fd00::1]:6443". */
function placeOf(text: string): Place[] {
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:]+)):(\d+)$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  return host === undefined ? [] : [{ host, port: Number(port) }];
}
