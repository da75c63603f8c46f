import type { Address } from "../base/address.ts";
import { wallOf } from "../base/clock.ts";

export type EndpointSlice = {
  readonly endpoints?: readonly {
    readonly addresses: readonly string[];
    readonly conditions?: { readonly ready?: boolean };
    readonly zone?: unknown;
  }[];
  readonly ports?: readonly { readonly name?: string; readonly port?: number }[];
};

export type Lease = {
  readonly metadata?: { readonly annotations?: Readonly<Record<string, string>> };
  readonly spec?: {
    readonly leaseDurationSeconds?: number;
    /** An RFC 3339 timestamp. The type is `unknown`, because the response has not been validated. */
    readonly renewTime?: unknown;
  };
};

type ZonedAddress = Address & { readonly zone?: string };

/** Returns the addresses in the EndpointSlices of default/kubernetes. The API defines a missing "ready" as true. */
export function addressesInSlices(slices: readonly EndpointSlice[]): readonly ZonedAddress[] {
  return slices.flatMap(({ endpoints = [], ports = [] }) => {
    const { port } = ports.find(({ name }) => name === "https") ?? ports[0] ?? {};
    if (port === undefined) return [];
    const ready = endpoints.filter(({ conditions }) => conditions?.ready !== false);
    return ready.flatMap(({ addresses, zone }) => {
      const zoned = typeof zone === "string" ? { zone } : {};
      return addresses.map((host) => ({ host, port, ...zoned }));
    });
  });
}

/** The annotation in which each apiserver publishes its peer address. An apiserver renews its own Lease every 10 s. */
export const peerAddress = "kubernetes.io/peer-advertise-address";

/**
 * Returns the addresses in the apiservers' identity Leases (namespace kube-system). Skips Leases that were not renewed
 * in time: their apiservers are gone, and Kubernetes deletes such Leases an hour later. `now`: milliseconds since 1970.
 */
export function addressesInLeases(leases: readonly Lease[], now: number): readonly Address[] {
  return leases
    .filter(({ spec }) => !hasRunOut(spec, now))
    .flatMap(({ metadata }) => addressIn(metadata?.annotations?.[peerAddress] ?? ""));
}

function hasRunOut(spec: Lease["spec"], now: number): boolean {
  const renewedAt = wallOf(String(spec?.renewTime));
  const seconds = spec?.leaseDurationSeconds ?? 0;
  return !Number.isNaN(renewedAt) && seconds > 0 && renewedAt + seconds * 1000 < now;
}

function addressIn(text: string): Address[] {
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:]+)):(\d+)$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  return host === undefined ? [] : [{ host, port: Number(port) }];
}
