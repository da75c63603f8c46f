/** All operations of all clients that this machine has. */
import { lacking, type Need, programOf, versions } from "../rig/parts.ts";
import { curlOperations } from "./curl.ts";
import { helmOperations } from "./helm.ts";
import { kubectlOperations } from "./kubectl.ts";
import { kubectlStreams } from "./kubectl-streams.ts";
import { kustomizeOperations } from "./kustomize.ts";
import type { Operation } from "./operation.ts";
import { libraryOperations } from "./programs.ts";

/** What these clients need in addition to `clusterNeeds`. */
export const clientsNeeds: readonly Need[] = ["kube-controller-manager"];

const all: readonly Operation[] = [
  ...versions.flatMap((version) => {
    const client = `kubectl ${version}`;
    const program = programOf("kubectl", version);
    return [...kubectlOperations(client, program), ...kubectlStreams(client, program)];
  }),
  ...helmOperations,
  ...kustomizeOperations,
  ...curlOperations,
  ...libraryOperations,
];

/**
 * Returns the operations of the clients whose names begin with one of `names`; of all clients if `names` is empty.
 * Calls `say` with a line for each client whose programs this machine lacks.
 */
export function operationsOf(names: readonly string[], say: (line: string) => void): readonly Operation[] {
  const wanted = all.filter(
    ({ client }) => names.length === 0 || names.some((name) => client.startsWith(name)),
  );
  const missing = new Map(wanted.map((operation) => [operation.client, lackOf(operation)]));
  for (const [client, what] of missing) if (what !== undefined) say(`skip: ${client} needs ${what}`);
  return wanted.filter(({ client }) => missing.get(client) === undefined);
}

function lackOf({ needs, prepare }: Operation): string | undefined {
  const missing = needs.map(lacking).filter((what) => what !== undefined);
  return missing.length > 0 ? missing.join("; ") : prepare?.();
}
