/** Parts of the configuration that a reload cannot apply: they take effect only after a restart. Pure. */
import type { ClusterConfig } from "./cluster.ts";
import type { Config } from "./config.ts";

/** The parts fixed at process start, by their names in the file. */
function fixedParts({ watches, health, admin, logging }: Config): Record<string, unknown> {
  return { watches, health, admin, logging };
}

function changedIn(was: Record<string, unknown>, is: Record<string, unknown>): readonly string[] {
  return Object.keys(is).filter((name) => JSON.stringify(was[name]) !== JSON.stringify(is[name]));
}

/**
 * Returns the changed parts that need a restart. Added or removed clusters, and all their other settings, apply
 * immediately.
 */
export function changedParts(before: Config, after: Config): readonly string[] {
  const ofClusters = after.clusters.flatMap(({ name, connectionPool }) => {
    const was = before.clusters.find((one) => one.name === name)?.connectionPool ?? connectionPool;
    return changedIn({ connectionPool: was }, { connectionPool }).map((part) => `clusters.${name}.${part}`);
  });
  return [...ofClusters, ...changedIn(fixedParts(before), fixedParts(after))];
}

/**
 * Returns what is in effect after a reload: `after`, except the parts that stay as they were when the process, or their
 * cluster, started. The next reload is compared with it, so a file that is read twice reports the same parts again.
 */
export function heldOf(before: Config, after: Config): Config {
  const { watches, health, admin, logging } = before;
  const held = (is: ClusterConfig): ClusterConfig => {
    const { connectionPool } = before.clusters.find(({ name }) => name === is.name) ?? is;
    return { ...is, connectionPool };
  };
  const [first, ...others] = after.clusters;
  return { ...after, watches, health, admin, logging, clusters: [held(first), ...others.map(held)] };
}
