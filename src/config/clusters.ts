/** The rules of several clusters: how a file has them, and which of them stands behind what. Pure. */

import { type Breach, didYouMean, quote, repeatedNames } from "./problem.ts";
import { upstreamFor, type Written, type WrittenListener, writtenUpstreams } from "./schema.ts";

/** One form or the other. */
export function formBreaches({ upstream, upstreams }: Written): Breach[] {
  if (upstream === undefined && upstreams === undefined)
    return [{ pointer: "/upstream", message: "is missing" }];
  if (upstream !== undefined && upstreams !== undefined)
    return [{ pointer: "/upstreams", message: 'stands beside "upstream": move that into the list' }];
  const named = (upstreams ?? []).map(({ name = "" }) => ({ name }));
  return repeatedNames("/upstreams", named);
}

/** Everything that clients come to leads to a cluster that there is; where there are several it must say to which. */
export function leadBreaches(written: Written): Breach[] {
  return written.listeners.flatMap((listener, index) => {
    const pointer = `/listeners/${index}`;
    const { upstream, hosts } = listener;
    return [
      ...listenerBreaches({ pointer, upstream }, listener, written),
      ...hosts.flatMap((host, at) => breachesOf({ ...host, pointer: `${pointer}/hosts/${at}` }, written)),
      ...(listener.routes ?? []).flatMap((route, at) =>
        breachesOf({ ...route, pointer: `${pointer}/routes/${at}` }, written),
      ),
    ];
  });
}

type Lead = { readonly pointer: string; readonly upstream?: string | undefined };

/** Routes stand for all names of a passthrough, so with routes there is nothing that its own could be for. */
function listenerBreaches(lead: Lead, { mode, routes }: WrittenListener, written: Written): Breach[] {
  if (mode !== "passthrough" || routes === undefined) return breachesOf(lead, written);
  if (lead.upstream === undefined) return [];
  return [
    { pointer: `${lead.pointer}/upstream`, message: 'is of no use beside "routes": each names its own' },
  ];
}

function breachesOf({ pointer, upstream }: Lead, written: Written): Breach[] {
  if (upstreamFor(written, upstream) !== undefined) return [];
  const all = writtenUpstreams(written);
  const names = all.flatMap(({ upstream: { name } }) => (name === undefined ? [] : [name]));
  const at = `${pointer}/upstream`;
  const there = names.map((name) => quote(name)).join(", ");
  if (upstream !== undefined) {
    const isNamed = names.length > 0 ? `: there is ${there}` : ": the only one has no name";
    const message = `is ${quote(upstream)}, which is no upstream${didYouMean(upstream, names) || isNamed}`;
    return [{ pointer: at, message }];
  }
  if (all.length < 2) return [];
  return [{ pointer: at, message: `is missing: there are several upstreams, ${there}` }];
}
