/** Runs one request at every replica, for the option --all-replicas. */
import { Failure } from "../../../base/failure.ts";
import { type Row, shown, textAt } from "../commands/rows.ts";
import type { Screen } from "../commands/screen.ts";
import type { AdminClient } from "./admin-client.ts";
import type { Column } from "./table.ts";

/** The result of a request to one replica. `row`: the replica's row in the list of replicas. */
export type OfReplica<T> = { readonly name: string; readonly row: Row; readonly outcome: T | Failure };

/**
 * Maximum number of concurrent requests. It is low, because a single process forwards all requests and buffers the
 * responses.
 */
const askedAtOnce = 4;

/**
 * Calls `ask` for each replica that can be reached. For every other replica, the outcome is a Failure with the reason.
 */
export async function fromAll<T>(
  client: AdminClient,
  ask: (client: AdminClient) => Promise<T | Failure>,
): Promise<readonly OfReplica<T>[] | Failure> {
  const replicas = await client.replicas();
  if (replicas instanceof Failure) return replicas;
  const all: OfReplica<T>[] = [];
  const next = replicas.entries();
  const worker = async (): Promise<void> => {
    // Each of these loops asks one replica at a time, so the number of loops limits the number of concurrent requests.
    // oxlint-disable-next-line no-await-in-loop
    for (const [at, { name, row, client: own }] of next)
      all[at] = { name, row, outcome: own instanceof Failure ? own : await ask(own) };
  };
  await Promise.all(Array.from({ length: askedAtOnce }, worker));
  return all;
}

/** Returns the answers of the replicas that have answered. */
export function answersIn<T>(
  all: readonly OfReplica<T>[],
): (Omit<OfReplica<T>, "outcome"> & { readonly answer: T })[] {
  return all.flatMap(({ name, row, outcome }) =>
    outcome instanceof Failure ? [] : [{ name, row, answer: outcome }],
  );
}

/** Returns the replicas that have not answered, as `-o json` shows them. */
export function failuresIn(
  all: readonly OfReplica<unknown>[],
): readonly { readonly replica: string; readonly message: string }[] {
  return all.flatMap(({ name, outcome }) =>
    outcome instanceof Failure ? [{ replica: name, message: outcome.message }] : [],
  );
}

/**
 * Prints a line for each replica that failed. Returns the exit code: 3 if a replica did not answer, else 2 if a replica
 * found the request invalid, else 1 if a replica failed, else 0.
 */
export function reportFailures(
  all: readonly OfReplica<unknown>[],
  { complain }: Pick<Screen, "complain">,
): number {
  for (const { replica, message } of failuresIn(all))
    complain(`${shown(replica)}: ${shown(message.split("\n")[0] ?? "")}\n`);
  const codes = all.map(({ outcome }) => (outcome instanceof Failure ? outcome.code : undefined));
  if (codes.includes("backend-lost")) return 3;
  if (codes.includes("bad-request")) return 2;
  return codes.every((code) => code === undefined) ? 0 : 1;
}

/** The first column of a table with rows of several replicas. */
export const replicaColumn: Column = { head: "REPLICA", of: (row) => textAt(row, "replica") };
