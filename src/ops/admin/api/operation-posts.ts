/** Routes POST requests of the JSON API to operations on the proxy (docs/admin-api.md). */
import { Failure, type FailureCode } from "../../../base/failure.ts";
import type { Operations, Operator, Outcome } from "../../../proxy/cluster/operations.ts";
import { adminLimits } from "../http/limits.ts";
import { failed, jsonReply, type Posted, type Posts, type Reply } from "../http/reply.ts";

type RunOperation = (
  operations: Operations,
  target: string,
  operator: Operator,
  body: Posted["body"],
) => Outcome | Promise<Outcome>;

/** An operation of the API. `{name}` in `path` is a placeholder for one path segment. */
export type OperationPath = {
  readonly path: string;
  readonly operation: string;
  readonly about: string;
  /** True if the body has fields besides "reason". The operation checks these fields itself. */
  readonly hasBody?: boolean;
};

const table: readonly (OperationPath & { readonly run: RunOperation })[] = [
  {
    path: "/api/v1/backends/{name}/drain",
    operation: "drain",
    about: "Drains a backend: no new requests, and its watches move gradually.",
    run: (operations, name, by) => operations.drain(name, by),
  },
  {
    path: "/api/v1/backends/{name}/undrain",
    operation: "undrain",
    about: "Ends the drain of a backend.",
    run: (operations, name, by) => operations.undrain(name, by),
  },
  {
    path: "/api/v1/watches/{id}/move",
    operation: "move",
    about: "Moves the watch with this audit ID to another backend.",
    run: (operations, id, by) => operations.move(id, by),
  },
  {
    path: "/api/v1/limits",
    operation: "limit",
    about: "Limits requests for a time: an entry of clusters[].limits without its name, and a duration.",
    hasBody: true,
    run: (operations, _none, by, body) => operations.limit(body, by),
  },
  {
    path: "/api/v1/limits/{id}/unlimit",
    operation: "unlimit",
    about: "Ends a limit that an operator has set.",
    run: (operations, id, by) => operations.unlimit(id, by),
  },
  {
    path: "/api/v1/reload",
    operation: "reload",
    about: "Reads the configuration again.",
    run: (operations, _none, by) => operations.reload(by),
  },
];

export const operationPaths: readonly OperationPath[] = table;

/** Group 1 of each pattern matches the text in place of `{name}`, or "" in a path without `{name}`. */
const runs = table.map(({ path, operation, run, hasBody = false }) => {
  const pattern = path.includes("{") ? path.replace(/\{\w+\}/, "([^/]+)") : `${path}()`;
  return { pattern: new RegExp(`^${pattern}$`), operation, run, hasBody };
});

/** HTTP statuses of failed operations, by failure code. The status for any other code is 409. */
const statuses: Partial<Record<FailureCode, number>> = { misdirected: 404, "bad-file": 422 };

/** While `isReadOnly` returns true (admin.readOnly), the returned routes reject and journal every request. */
export function operationPosts(operations: Operations, isReadOnly: () => boolean): Posts {
  return (path) => {
    for (const { pattern, operation, run, hasBody } of runs) {
      const target = decoded(pattern.exec(path)?.[1]);
      if (target === undefined) continue;
      if (isReadOnly()) return (posted) => refused(operations, operation, target, posted);
      return async (posted) => {
        const unknown = Object.keys(posted.body).find((name) => name !== "reason");
        if (!hasBody && unknown !== undefined)
          return failed(
            400,
            `Unknown field ${JSON.stringify(unknown.slice(0, 40))}: the body may have a "reason"`,
          );
        return reply(operation, target, await run(operations, target, operatorOf(posted), posted.body));
      };
    }
    return undefined;
  };
}

function decoded(part: string | undefined): string | undefined {
  try {
    return part === undefined ? undefined : decodeURIComponent(part);
  } catch {
    return undefined;
  }
}

function operatorOf({ by, body }: Posted): Operator {
  const { reason } = body;
  return { by, reason: typeof reason === "string" ? reason.slice(0, adminLimits.operatorChars) : "" };
}

/** Journals an operation that admin.readOnly forbids, and returns the response. */
export function refused(operations: Operations, operation: string, target: string, posted: Posted): Reply {
  const reason = 'The configuration has "admin.readOnly: true": operations are disabled';
  operations.refuse(operation, target, operatorOf(posted), reason);
  return failed(403, reason);
}

function reply(operation: string, target: string, outcome: Outcome): Reply {
  if (outcome instanceof Failure) return failed(statuses[outcome.code] ?? 409, outcome.message);
  return jsonReply(200, { kind: "Operation", operation, target, outcome });
}
