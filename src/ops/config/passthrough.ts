import type { Written, WrittenListener } from "../../../config/schema/written.ts";
import { parseBackendUrl } from "../../base/address.ts";
import { type Breach, quote } from "./problem.ts";
import { clusterFor, type Placed } from "./schema.ts";

export function passthroughBreaches(written: Written): Breach[] {
  return written.listeners.flatMap((listener, index) => {
    const pointer = `/listeners/${index}`;
    if (listener.mode === "Passthrough")
      return [
        ...decryptionBreaches(pointer, listener),
        ...clustersBehind(listener, written).flatMap((placed) => healthBreaches(pointer, placed)),
        ...routeBreaches(pointer, listener, written),
      ];
    const message = 'is for mode "Passthrough" only';
    return listener.routes === undefined ? [] : [{ pointer: `${pointer}/routes`, message }];
  });
}

function clustersBehind({ cluster, routes }: WrittenListener, written: Written): readonly Placed[] {
  const names = routes?.map((route) => route.cluster) ?? [cluster];
  const found = [...new Set(names)].map((name) => clusterFor(written, name));
  const placed = found.filter((one) => one !== undefined);
  return placed.filter((one, at) => placed.findIndex(({ pointer }) => pointer === one.pointer) === at);
}

/** Finds fields that require decrypted traffic. A passthrough listener does not decrypt traffic. */
function decryptionBreaches(pointer: string, { tls, trustedForwarderCIDRs }: WrittenListener): Breach[] {
  const message = 'is not for mode "Passthrough": nothing is read behind TLS';
  const breaches: Breach[] = [];
  if (tls !== undefined) breaches.push({ pointer: `${pointer}/tls`, message });
  if (trustedForwarderCIDRs.length > 0)
    breaches.push({ pointer: `${pointer}/trustedForwarderCIDRs`, message });
  return breaches;
}

/**
 * Finds backends without TLS, and clusters without idle upstream connections. A passthrough listener needs these
 * connections, because only their unanswered PINGs show that a backend is dead.
 */
function healthBreaches(pointer: string, { cluster, pointer: at }: Placed): Breach[] {
  const plain = (cluster.backends ?? []).find(({ url }) => parseBackendUrl(url)?.isEncrypted === false);
  const breaches: Breach[] = [];
  if (plain !== undefined)
    breaches.push({
      pointer: `${pointer}/mode`,
      message: `leaves TLS to the backends, but ${quote(plain.name)} has none`,
    });
  if (cluster.connectionPool.minIdleConnections === 0)
    breaches.push({
      pointer: `${at}/connectionPool/minIdleConnections`,
      message: 'is 0, but a listener of mode "Passthrough" needs a connection that detects a dead backend',
    });
  return breaches;
}

function routeBreaches(pointer: string, { routes = [] }: WrittenListener, written: Written): Breach[] {
  const taken: string[] = [];
  return routes.flatMap(({ serverNames = [""], backends = [], ...route }, at) => {
    const own = `${pointer}/routes/${at}`;
    const cluster = clusterFor(written, route.cluster)?.cluster;
    // If the cluster is missing, this rule reports nothing, because another rule reports the missing cluster.
    const listed = cluster === undefined ? backends : (cluster.backends ?? []).map(({ name }) => name);
    const unknown = backends.flatMap((name, index) =>
      listed.includes(name)
        ? []
        : [
            {
              pointer: `${own}/backends/${index}`,
              message: `is ${quote(name)}, which is not a listed backend`,
            },
          ],
    );
    const repeated = serverNames.flatMap((name, index) => {
      const isTaken = taken.includes(name);
      taken.push(name);
      if (!isTaken) return [];
      if (name === "") return [{ pointer: own, message: 'is the second one without "serverNames"' }];
      return [{ pointer: `${own}/serverNames/${index}`, message: `is ${quote(name)} again` }];
    });
    return [...unknown, ...repeated];
  });
}
