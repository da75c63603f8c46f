/**
 * What a cluster is asked about who comes to the API, and how its answer is read: authentication.k8s.io/v1 TokenReview,
 * authorization.k8s.io/v1 SubjectAccessReview. Pure. What is not clearly a yes is a no.
 */
import type { Review } from "../../discovery/reviewer.ts";

/** As the cluster names them; it goes back to it as it came. */
export type User = {
  readonly username: string;
  readonly uid: string;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
};

/**
 * Before every path that a cluster is asked about. Its own ClusterRole system:discovery lets everybody get /api/*, which
 * would be our API, too.
 */
const pathPrefix = "/watchkeeper";

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
  const spec = { user: username, ...rest, nonResourceAttributes: { verb, path: pathPrefix + path } };
  return {
    kind,
    path: "/apis/authorization.k8s.io/v1/subjectaccessreviews",
    body: { apiVersion: "authorization.k8s.io/v1", kind, spec },
  };
}

/** Undefined: nobody, or somebody whose token is for others. */
export function userIn(answer: unknown, audiences: readonly string[]): User | undefined {
  const status = fieldsOf(fieldsOf(answer)["status"]);
  if (status["authenticated"] !== true) return undefined;
  // An authenticator that knows nothing of audiences says so by naming none (k8s.io/api, authentication/v1).
  const named = textsIn(status["audiences"]);
  if (audiences.length > 0 && !audiences.some((one) => named.includes(one))) return undefined;
  const { username, uid, groups, extra } = fieldsOf(status["user"]);
  if (typeof username !== "string" || username === "") return undefined;
  const extras = Object.entries(fieldsOf(extra)).map(([key, values]) => [key, textsIn(values)] as const);
  return {
    username,
    uid: typeof uid === "string" ? uid : "",
    groups: textsIn(groups),
    extra: Object.fromEntries(extras),
  };
}

export type Access = { readonly isAllowed: boolean; readonly reason: string };

export function accessIn(answer: unknown): Access {
  const { allowed, denied, reason } = fieldsOf(fieldsOf(answer)["status"]);
  return { isAllowed: allowed === true && denied !== true, reason: typeof reason === "string" ? reason : "" };
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? { ...value } : {};
}

function textsIn(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];
}
