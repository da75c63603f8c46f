/** The rules of passthrough listeners: what they need, and what is not for them. Pure. */

import { parseBackendUrl } from "../base/address.ts";
import { type Breach, quote } from "./problem.ts";
import { type Placed, upstreamFor, type Written, type WrittenListener } from "./schema.ts";

export function passthroughBreaches(written: Written): Breach[] {
  return written.listeners.flatMap((listener, index) => {
    const pointer = `/listeners/${index}`;
    if (listener.mode === "passthrough")
      return [
        ...strangers(pointer, listener),
        ...ledTo(listener, written).flatMap((placed) => needs(pointer, placed)),
        ...routeBreaches(pointer, listener, written),
      ];
    const message = 'is for mode "passthrough" only';
    return listener.routes === undefined ? [] : [{ pointer: `${pointer}/routes`, message }];
  });
}

/** The clusters behind it, each once. */
function ledTo({ upstream, routes }: WrittenListener, written: Written): readonly Placed[] {
  const names = routes?.map((route) => route.upstream) ?? [upstream];
  const found = [...new Set(names)].map((name) => upstreamFor(written, name));
  const placed = found.filter((one) => one !== undefined);
  return placed.filter((one, at) => placed.findIndex(({ pointer }) => pointer === one.pointer) === at);
}

/** Fields whose work is the backend's own where TLS is not ended here. */
function strangers(pointer: string, { tls, trustedForwarders }: WrittenListener): Breach[] {
  const message = 'is not for mode "passthrough": nothing is read behind TLS';
  const breaches: Breach[] = [];
  if (tls !== undefined) breaches.push({ pointer: `${pointer}/tls`, message });
  if (trustedForwarders.length > 0) breaches.push({ pointer: `${pointer}/trustedForwarders`, message });
  return breaches;
}

/** TLS at the other end, and an upstream connection to each backend: its PING is how a dead one is known. */
function needs(pointer: string, { upstream, pointer: at }: Placed): Breach[] {
  const plain = (upstream.backends ?? []).find(({ url }) => parseBackendUrl(url)?.isEncrypted === false);
  const breaches: Breach[] = [];
  if (plain !== undefined)
    breaches.push({
      pointer: `${pointer}/mode`,
      message: `leaves TLS to the backends, but ${quote(plain.name)} has none`,
    });
  if (upstream.lanes.warm === 0)
    breaches.push({
      pointer: `${at}/lanes/warm`,
      message: 'is 0, but a listener of mode "passthrough" needs a lane to see its backend die',
    });
  return breaches;
}

function routeBreaches(pointer: string, { routes = [] }: WrittenListener, written: Written): Breach[] {
  const taken: string[] = [];
  return routes.flatMap(({ serverNames = [""], upstream, backends = [] }, at) => {
    const own = `${pointer}/routes/${at}`;
    const cluster = upstreamFor(written, upstream)?.upstream;
    // One that does not exist is told of as such.
    const listed = cluster === undefined ? backends : (cluster.backends ?? []).map(({ name }) => name);
    const unknown = backends.flatMap((name, index) =>
      listed.includes(name)
        ? []
        : [{ pointer: `${own}/backends/${index}`, message: `is ${quote(name)}, which is no listed backend` }],
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
