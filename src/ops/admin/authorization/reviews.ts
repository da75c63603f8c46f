/**
 * Builds requests for TokenReview and SubjectAccessReview (v1), and reads the results. A response without a clear
 * result counts as a denial.
 */
import type { Review } from "../../discovery/reviewer.ts";

/** A user as the TokenReview returned it. The SubjectAccessReview gets the same fields, unchanged. */
export type User = {
  readonly username: string;
  readonly uid: string;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
};

export function tokenReview(token: string, audiences: readonly string[]): Review {
  const kind = "TokenReview";
  const spec = audiences.length === 0 ? { token } : { token, audiences };
  return {
    kind,
    path: "/apis/authentication.k8s.io/v1/tokenreviews",
    body: { apiVersion: "authentication.k8s.io/v1", kind, spec },
  };
}

export function accessReview(user: User, verb: "get" | "post", path: string): Review {
  const kind = "SubjectAccessReview";
  const { username, ...rest } = user;
  const spec = { user: username, ...rest, nonResourceAttributes: { verb, path } };
  return {
    kind,
    path: "/apis/authorization.k8s.io/v1/subjectaccessreviews",
    body: { apiVersion: "authorization.k8s.io/v1", kind, spec },
  };
}

/**
 * Returns the user of a TokenReview; undefined if the token is not authenticated, or is not for any of these audiences,
 * or if a field of the user has a wrong type.
 */
export function userIn(answer: unknown, audiences: readonly string[]): User | undefined {
  const status = fieldsOf(fieldsOf(answer)["status"]);
  if (status["authenticated"] !== true) return undefined;
  // An empty `status.audiences` means that the apiserver does not check audiences (k8s.io/api, authentication/v1).
  const named = textsIn(status["audiences"]) ?? [];
  if (audiences.length > 0 && !audiences.some((one) => named.includes(one))) return undefined;
  return userFrom(fieldsOf(status["user"]));
}

function userFrom({ username, uid = "", ...rest }: Readonly<Record<string, unknown>>): User | undefined {
  const groups = textsIn(rest["groups"]);
  const extra = new Map<string, readonly string[]>();
  for (const [key, values] of Object.entries(fieldsOf(rest["extra"]))) {
    const texts = textsIn(values);
    if (texts === undefined) return undefined;
    extra.set(key, texts);
  }
  if (typeof username !== "string" || username === "" || typeof uid !== "string") return undefined;
  return groups && { username, uid, groups, extra: Object.fromEntries(extra) };
}

export type Access = { readonly isAllowed: boolean; readonly reason: string };

export function accessIn(answer: unknown): Access {
  const { allowed, denied, reason } = fieldsOf(fieldsOf(answer)["status"]);
  return { isAllowed: allowed === true && denied !== true, reason: typeof reason === "string" ? reason : "" };
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? { ...value } : {};
}

/** Returns the texts of a list, which may be missing; undefined if the value is anything else. */
function textsIn(value: unknown): readonly string[] | undefined {
  if (value === undefined || value === null) return [];
  return Array.isArray(value) && value.every((one) => typeof one === "string") ? value : undefined;
}
