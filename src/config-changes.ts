/** What a reload cannot take up: parts that hold from the next start only. Pure. */
import type { Config } from "./config.ts";
import type { UpstreamConfig } from "./config-upstream.ts";

/** What is fixed when the process starts, by its names in the file. */
function fixedParts({ watches, health, admin, logging }: Config): Record<string, unknown> {
  return { watches, health, admin, logging };
}

/** What is fixed when a cluster comes. */
function fixedUpstreamParts({ lanes, sharing }: UpstreamConfig): Record<string, unknown> {
  return { lanes, sharing };
}

function changedIn(was: Record<string, unknown>, is: Record<string, unknown>): readonly string[] {
  return Object.keys(is).filter((name) => JSON.stringify(was[name]) !== JSON.stringify(is[name]));
}

/** Which of those differ between the two. Clusters that come or go, and all else of them, are taken up at once. */
export function changedParts(before: Config, after: Config): readonly string[] {
  const ofUpstreams = after.upstreams.flatMap((is) => {
    const was = before.upstreams.find(({ name }) => name === is.name);
    if (was === undefined) return [];
    const path = is.name === "" ? "upstream" : `upstreams.${is.name}`;
    return changedIn(fixedUpstreamParts(was), fixedUpstreamParts(is)).map((part) => `${path}.${part}`);
  });
  return [...ofUpstreams, ...changedIn(fixedParts(before), fixedParts(after))];
}
