/** What a reload cannot take up: parts that hold from the next start only. Pure. */
import type { Config } from "./config.ts";
import type { UpstreamConfig } from "./upstream.ts";

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

/**
 * What holds once `after` was taken: its own words but for those parts, which stay as they were when the process started,
 * or their cluster came. To be compared with the next one: a file that was read twice waits for the same as before.
 */
export function heldOf(before: Config, after: Config): Config {
  const { watches, health, admin, logging } = before;
  const heldUpstream = (is: UpstreamConfig): UpstreamConfig => {
    const { lanes, sharing } = before.upstreams.find(({ name }) => name === is.name) ?? is;
    return { ...is, lanes, sharing };
  };
  const [first, ...others] = after.upstreams;
  const upstreams = [heldUpstream(first), ...others.map(heldUpstream)] as const;
  return { ...after, watches, health, admin, logging, upstreams };
}
