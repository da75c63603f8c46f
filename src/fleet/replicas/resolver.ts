/**
 * Finds replicas by a DNS name, such as that of a headless Service. Keeps the last result while the name cannot be
 * resolved.
 */
import type { Address } from "../../base/address.ts";
import type { Clock } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import type { Journal } from "../../events/journal.ts";
import { nameSource } from "../../ops/discovery/discover.ts";
import type { Discovered } from "../../ops/discovery/discovered.ts";
import { Discovery, type Source } from "../../ops/discovery/discovery.ts";
import { replicaLimits } from "./limits.ts";
import type { ReplicasParts } from "./replicas.ts";

/** Name of the source in the journal, and in the incident that reports its failures. */
const from = "admin.replicas";

export type ResolverParts = {
  readonly clock: Clock;
  readonly journal: Journal;
  /** Returns the discovery source that resolves a name; default: one that uses the system's resolver. */
  readonly sourceOf?: (hostname: string, port: number) => Source;
};

/** Returns the function `resolve` of `Replicas`: it resolves a name repeatedly, until the caller stops it. */
export function resolver({
  clock,
  journal,
  sourceOf: make = nameSource,
}: ResolverParts): ReplicasParts["resolve"] {
  const intervalMs = replicaLimits.askEveryMs;
  return (name, onFound) => {
    const source = make(name.hostname, name.port);
    const ask = async (): Promise<readonly Discovered[] | Failure> => {
      const found = await source.ask();
      return found instanceof Failure ? found : checked(found);
    };
    const discovery = new Discovery({
      clock,
      journal,
      source: { ...source, from, ask },
      intervalMs,
      found: [],
      onChange: (found) => onFound(found.map(({ host, port }): Address => ({ host, port }))),
    });
    discovery.start();
    return () => discovery.stop();
  };
}

/**
 * Returns a Failure if the name has no address or too many. This is checked here, because the message of discovery's
 * own check would call replicas backends.
 */
function checked(found: readonly Discovered[]): readonly Discovered[] | Failure {
  if (found.length === 0) return new Failure("bad-file", "proxy", "The name has no address");
  if (found.length <= replicaLimits.replicas) return found;
  return new Failure("bad-file", "proxy", `${found.length} replicas, more than ${replicaLimits.replicas}`);
}
