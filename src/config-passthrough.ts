/** The rules of passthrough listeners: what they need, and what is not for them. Pure. */

import { parseBackendUrl } from "./address.ts";
import type { Written, WrittenListener } from "./config-schema.ts";
import { type Breach, quote } from "./problem.ts";

export function passthroughBreaches(written: Written): Breach[] {
  return written.listeners.flatMap((listener, index) => {
    const pointer = `/listeners/${index}`;
    if (listener.mode === "passthrough")
      return [
        ...strangers(pointer, listener),
        ...needs(pointer, written),
        ...routeBreaches(pointer, listener, written),
      ];
    const message = 'is for mode "passthrough" only';
    return listener.routes === undefined ? [] : [{ pointer: `${pointer}/routes`, message }];
  });
}

/** Fields whose work is the backend's own where TLS is not ended here. */
function strangers(pointer: string, { tls, trustedForwarders }: WrittenListener): Breach[] {
  const message = 'is not for mode "passthrough": nothing is read behind TLS';
  const breaches: Breach[] = [];
  if (tls !== undefined) breaches.push({ pointer: `${pointer}/tls`, message });
  if (trustedForwarders.length > 0) breaches.push({ pointer: `${pointer}/trustedForwarders`, message });
  return breaches;
}

/** TLS at the other end, and a lane to each backend: its PING is how a dead one is known. */
function needs(pointer: string, { upstream }: Written): Breach[] {
  const plain = (upstream.backends ?? []).find(({ url }) => parseBackendUrl(url)?.isEncrypted === false);
  const breaches: Breach[] = [];
  if (plain !== undefined)
    breaches.push({
      pointer: `${pointer}/mode`,
      message: `leaves TLS to the backends, but ${quote(plain.name)} has none`,
    });
  if (upstream.lanes.warm === 0)
    breaches.push({
      pointer: "/upstream/lanes/warm",
      message: 'is 0, but a listener of mode "passthrough" needs a lane to see its backend die',
    });
  return breaches;
}

function routeBreaches(pointer: string, { routes = [] }: WrittenListener, { upstream }: Written): Breach[] {
  const listed = (upstream.backends ?? []).map(({ name }) => name);
  const taken: string[] = [];
  return routes.flatMap(({ serverNames = [""], backends }, at) => {
    const own = `${pointer}/routes/${at}`;
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
