/**
 * Listeners, hosts and routes refer to clusters by name: every name must exist, and with several clusters it is
 * required. Pure.
 */

import { type Breach, didYouMean, quote } from "./problem.ts";
import { clusterFor, type Written, type WrittenListener } from "./schema.ts";

export function referenceBreaches(written: Written): Breach[] {
  return written.listeners.flatMap((listener, index) => {
    const pointer = `/listeners/${index}`;
    const { cluster, hosts, routes = [] } = listener;
    return [
      ...listenerBreaches({ pointer, cluster }, listener, written),
      ...hosts.flatMap((host, at) => breachesOf({ ...host, pointer: `${pointer}/hosts/${at}` }, written)),
      ...routes.flatMap((route, at) => breachesOf({ ...route, pointer: `${pointer}/routes/${at}` }, written)),
    ];
  });
}

type Reference = { readonly pointer: string; readonly cluster?: string | undefined };

/**
 * With routes, every server name of a passthrough listener belongs to a route, and the listener's own cluster would be
 * unused.
 */
function listenerBreaches(own: Reference, { mode, routes }: WrittenListener, written: Written): Breach[] {
  if (mode !== "Passthrough" || routes === undefined) return breachesOf(own, written);
  if (own.cluster === undefined) return [];
  return [
    { pointer: `${own.pointer}/cluster`, message: 'has no effect beside "routes": each names its own' },
  ];
}

function breachesOf({ pointer, cluster }: Reference, written: Written): Breach[] {
  if (clusterFor(written, cluster) !== undefined) return [];
  const names = written.clusters.map(({ name }) => name);
  const all = names.map((name) => quote(name)).join(", ");
  const message =
    cluster === undefined
      ? `is missing: it must be one of ${all}`
      : `is ${quote(cluster)}, and no cluster has that name${didYouMean(cluster, names) || `: there is ${all}`}`;
  return [{ pointer: `${pointer}/cluster`, message }];
}
