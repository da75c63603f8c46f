/** The paths at which an operator changes something (docs/admin-api.md), and what they answer. */
import { Failure, type FailureCode } from "../../base/failure.ts";
import type { Operations, Operator, Outcome } from "../../proxy/cluster/operations.ts";
import { adminLimits } from "../http/limits.ts";
import { failed, jsonReply, type Posted, type Posts, type Reply } from "../http/reply.ts";

type Run = (operations: Operations, target: string, operator: Operator) => Outcome | Promise<Outcome>;

/** `{name}` stands for one part of the path. */
export type OperationPath = { readonly path: string; readonly operation: string; readonly about: string };

const table: readonly (OperationPath & { readonly run: Run })[] = [
  {
    path: "/api/v1/backends/{name}/drain",
    operation: "drain",
    about: "Lets a backend go: nothing new, and its watches move at leisure.",
    run: (operations, name, by) => operations.drain(name, by),
  },
  {
    path: "/api/v1/backends/{name}/undrain",
    operation: "undrain",
    about: "Takes it back.",
    run: (operations, name, by) => operations.undrain(name, by),
  },
  {
    path: "/api/v1/watches/{id}/move",
    operation: "move",
    about: "Sends the watch of this audit id elsewhere, from its next event.",
    run: (operations, id, by) => operations.move(id, by),
  },
  {
    path: "/api/v1/reload",
    operation: "reload",
    about: "Reads the configuration again.",
    run: (operations, _none, by) => operations.reload(by),
  },
];

/** For whoever describes them. */
export const operationPaths: readonly OperationPath[] = table;

/** Its group is what stands for `{name}`; empty where nothing does. */
const runs = table.map(({ path, operation, run }) => {
  const pattern = path.includes("{") ? path.replace(/\{\w+\}/, "([^/]+)") : `${path}()`;
  return { pattern: new RegExp(`^${pattern}$`), operation, run };
});

/** What is not there, is not possible just now, or was not taken. */
const statuses: Partial<Record<FailureCode, number>> = { misdirected: 404, "bad-file": 422 };

/** `isReadOnly` is the configuration's `admin.readOnly`: every operation is refused, and logged. */
export function operationPosts(operations: Operations, isReadOnly: boolean): Posts {
  return (path) => {
    for (const { pattern, operation, run } of runs) {
      const target = decoded(pattern.exec(path)?.[1]);
      if (target === undefined) continue;
      if (isReadOnly) return (posted) => refused(operations, operation, target, posted);
      return async (posted) => reply(operation, target, await run(operations, target, operatorOf(posted)));
    }
    return undefined;
  };
}

/** Undefined for what is no text, so that there is no such path. */
function decoded(part: string | undefined): string | undefined {
  try {
    return part === undefined ? undefined : decodeURIComponent(part);
  } catch {
    return undefined; // "%zz"
  }
}

/** The body may have a `reason`, which goes to the journal. */
function operatorOf({ by, body }: Posted): Operator {
  const { reason } = body;
  return { by, reason: typeof reason === "string" ? reason.slice(0, adminLimits.operatorChars) : "" };
}

function refused(operations: Operations, operation: string, target: string, posted: Posted): Reply {
  const reason = 'The configuration has "admin.readOnly: true": nothing is changed over the API';
  operations.refuse(operation, target, operatorOf(posted), reason);
  return failed(403, reason);
}

function reply(operation: string, target: string, outcome: Outcome): Reply {
  if (outcome instanceof Failure) return failed(statuses[outcome.code] ?? 409, outcome.message);
  return jsonReply(200, { kind: "Operation", operation, target, outcome });
}
