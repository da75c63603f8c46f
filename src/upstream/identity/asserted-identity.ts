/**
 * Decides which identity the proxy asserts for a client with a certificate (X-Remote-User or Impersonate-User), and
 * which header fields such a client may not send itself (D9, A39-A42). Creates one Identity per connection, from the
 * policy and the certificate.
 */

import { Failure } from "../../base/failure.ts";
import { Field, role } from "../../h2/core/field.ts";
import type { HeaderNames } from "../../ops/config/cluster.ts";
import type { IdentityPolicy } from "../../ops/config/config.ts";
import type { Attribute } from "../../x509/names.ts";

/**
 * A client is disconnected this many ms before its certificate expires. It then connects with its renewed certificate,
 * and gets no 401 for the old one. Kubelets renew a certificate after 70 to 90 % of its lifetime.
 */
export const certificateLeaveMs = 5000;

/**
 * Unidentified: the client's own credential is forwarded. Asserted: the proxy states the client's identity. Refused:
 * the client's certificate is not accepted.
 */
export type Identity = Unidentified | Refused | Asserted;

export type FieldRule = (field: Field) => boolean;

type Common = {
  /**
   * True for a header field that names an identity: X-Remote-* and the configured names, also with "_" or another
   * separator in place of "-". If the listener or host asserts identities, the proxy drops such fields of every client,
   * with or without a certificate. Undefined: no field is dropped.
   */
  readonly strips: FieldRule | undefined;
};

/** A client without a certificate. */
export type Unidentified = Common & { readonly kind: "none" };

/** `mayUseBearer`: true if the client's bearer token replaces its refused certificate, as at the apiserver. */
export type Refused = Common & {
  readonly kind: "refused";
  readonly failure: Failure;
  readonly mayUseBearer: boolean;
};

export type Asserted = Common & {
  readonly kind: "asserted";
  readonly user: string;
  readonly groups: readonly string[];
  /** The trust class of the client's requests. Their upstream connections carry only the proxy's own credential. */
  readonly trust: AssertedTrust;
  /** The fields that assert the identity. They follow all fields of the client. */
  readonly fields: readonly Field[];
  /**
   * True for a field that `strips` selects, and for Authorization, because the certificate takes precedence over a
   * token.
   */
  readonly drops: FieldRule;
  /**
   * True for an impersonation field that the apiserver could not check against the client's own rights, because the
   * request carries the proxy's credential.
   */
  readonly isPresumptuous: FieldRule;
  /** The earliest expiry of the certificates that the client has presented, in ms since 1970. */
  readonly notAfter: number;
};

export type AssertedTrust = "front-proxy" | "impersonate";

export type PeerCertificate = {
  /** The attributes of the subject, in their order. */
  readonly attributes: readonly Attribute[];
  /** SHA-256 of the certificate in lower-case hexadecimal digits, without colons. */
  readonly fingerprint: string;
  readonly notAfter: number;
  /** Why the certificate does not lead to the client CA; undefined: it does. */
  readonly problem: string | undefined;
};

/** The identity of a client that connects without TLS, or to a listener that ignores client certificates. */
export const unidentified: Unidentified = { kind: "none", strips: undefined };

const rejected: Refused = {
  kind: "refused",
  strips: undefined,
  failure: new Failure(
    "client-certificate",
    "client",
    "This proxy takes no client certificates: use a bearer token",
  ),
  mayUseBearer: false,
};

/** The header names in kube-apiserver's documentation, which kubeadm configures. */
const usualNames: HeaderNames = {
  user: ["x-remote-user"],
  uid: ["x-remote-uid"],
  group: ["x-remote-group"],
  extraPrefixes: ["x-remote-extra-"],
};

export function identityOf(shown: PeerCertificate | undefined, policy: IdentityPolicy): Identity {
  if (policy.clientCerts === "Reject") return shown === undefined ? unidentified : rejected;
  const rules = rulesUnder(policy);
  const { strips } = rules;
  const assertion = shown && assertionFor(shown, policy);
  if (shown === undefined || assertion === undefined) return { kind: "none", strips };
  if (typeof assertion !== "string")
    return { kind: "asserted", ...assertion, ...rules, notAfter: shown.notAfter };
  const failure = new Failure("unauthenticated", "client", assertion);
  return { kind: "refused", strips, failure, mayUseBearer: true };
}

type Assertion = Pick<Asserted, "user" | "groups" | "trust" | "fields" | "isPresumptuous">;

/** Returns a string that says why the certificate is refused. */
function assertionFor(
  { attributes, fingerprint, problem }: PeerCertificate,
  policy: AssertingPolicy,
): Assertion | string {
  if (problem !== undefined) return `Bad client certificate: ${problem}`;
  return policy.clientCerts === "ActAsImpersonator" ? lent : namedIn(attributes, fingerprint, policy);
}

/** Kubernetes' attribute for a user's uid, 1.3.6.1.4.1.57683.2 (k8s.io/apiserver, AllowParsingUserUIDFromCertAuth). */
const uidAttribute = "2b0601040183c25302";

/** As at the apiserver, the last common name is the user, and every organisation is a group. */
function namedIn(
  attributes: readonly Attribute[],
  fingerprint: string,
  policy: AssertingPolicy,
): Assertion | string {
  const textsOf = (type: string): string[] =>
    attributes.flatMap((attribute) => (attribute.type === type ? [attribute.text] : []));
  const name = textsOf("550403").at(-1) ?? "";
  const groups = textsOf("55040a");
  const uids = textsOf(uidAttribute);
  if (name === "") return "The certificate's subject has no common name, so it names no user";
  // The apiserver refuses a certificate with several uids, or with an empty uid (x509.go, parseUIDFromCert).
  if (uids.length > 1 || uids[0] === "") return "The certificate has an empty uid, or several";
  if (policy.clientCerts === "Impersonate" && name === anonymous)
    return `${anonymous} cannot be impersonated with a certificate's groups`;
  const assertion = assertionOf({ name, uid: uids[0], groups, fingerprint }, policy);
  return assertion.fields.every(({ fault, hasOuterBlanks }) => fault === undefined && !hasOuterBlanks)
    ? assertion
    : "The certificate's subject has bytes that no header field may carry";
}

export function assertionOf(user: User, policy: AssertingPolicy): Assertion {
  if (policy.clientCerts === "ActAsImpersonator") return lent;
  return policy.clientCerts === "FrontProxy" ? frontProxyAssertion(user, policy.names) : impersonation(user);
}

/** Returns a rule that is true for each client field or trailer that the proxy drops; undefined: it drops none. */
export function dropsOf(identity: Identity, asserted: Asserted | undefined): FieldRule | undefined {
  return asserted === undefined ? identity.strips : asserted.drops;
}

/**
 * Returns when a client should reconnect: shortly before its certificate expires or, if too little time is left, when
 * it expires. `wallMs` is the present time; all times are in ms since 1970.
 */
export function leavesAt(identity: Identity, wallMs: number): number {
  if (identity.kind !== "asserted") return Number.POSITIVE_INFINITY;
  const early = identity.notAfter - certificateLeaveMs;
  return early > wallMs ? early : identity.notAfter;
}

export type AssertingPolicy = Exclude<IdentityPolicy, { readonly clientCerts: "Reject" }>;

/** The apiserver puts an impersonated user of this name into system:unauthenticated and ignores the stated groups. */
const anonymous = "system:anonymous";

type User = {
  readonly name: string;
  readonly uid: string | undefined;
  readonly groups: readonly string[];
  readonly fingerprint: string;
};

/** Returns the fields that an authenticating proxy sends to the apiserver (k8s.io/apiserver, requestheader.go). */
function frontProxyAssertion({ name, uid, groups, fingerprint }: User, names: HeaderNames): Assertion {
  const [userName = "", uidName = "", groupName = "", prefix = ""] = [
    names.user[0],
    names.uid[0],
    names.group[0],
    names.extraPrefixes[0],
  ];
  const fields = [fieldOf(userName, name)];
  if (uid !== undefined) fields.push(fieldOf(uidName, uid));
  fields.push(...groupFields(groupName, groups));
  // A header field's name must not contain a slash. The name of this extra key contains one, so the slash is
  // percent-encoded; the apiserver decodes it.
  fields.push(fieldOf(`${prefix}authentication.kubernetes.io%2fcredential-id`, `X509SHA256=${fingerprint}`));
  // The apiserver gets the client's identity, so the apiserver itself checks whether the client may impersonate another
  // user.
  return { user: name, groups, trust: "front-proxy", fields, isPresumptuous: () => false };
}

/**
 * Returns the fields that impersonate the user with the proxy's own credential. The credential id is not sent, because
 * it would require a permission of its own (userextras), and no authorizer evaluates it.
 */
function impersonation({ name, uid, groups }: User): Assertion {
  const fields = [fieldOf("impersonate-user", name)];
  if (uid !== undefined) fields.push(fieldOf("impersonate-uid", uid));
  const own = groupFields("impersonate-group", groups);
  fields.push(...own);
  // For a service account without groups, the apiserver would add the account's usual groups, which the certificate
  // does not grant (endpoints/filters/impersonation, groupsSpecified). To prevent that, the proxy names a group that
  // all users have.
  if (own.length === 0 && name.startsWith("system:serviceaccount:"))
    fields.push(fieldOf("impersonate-group", "system:authenticated"));
  return { user: name, groups, trust: "impersonate", fields, isPresumptuous: isImpersonation };
}

/**
 * Asserts no user. The request carries the proxy's own credential alone, and so gets the proxy's rights. In mode
 * `ActAsImpersonator`, every client with a valid certificate may send such requests.
 */
const lent: Assertion = {
  user: "impersonator",
  groups: [],
  trust: "impersonate",
  fields: [],
  isPresumptuous: () => false,
};

/** Returns one field for each group, because a group's name may contain a comma. The apiserver ignores empty names. */
function groupFields(name: string, groups: readonly string[]): Field[] {
  return groups.filter((group) => group !== "").map((group) => fieldOf(name, group));
}

/** Returns a field whose latin1 text has the same bytes as `value` in UTF-8, because the apiserver reads UTF-8. */
function fieldOf(name: string, value: string): Field {
  return new Field(name, Buffer.from(value).toString("latin1"), true);
}

/**
 * Returns the name with "-" in place of each character that is neither letter nor digit. A server behind the apiserver
 * may read `x_remote_user` as `x-remote-user`, as CGI does (RFC 3875 §4.1.18); older versions of Apache do so with all
 * these characters.
 */
function plain(name: string): string {
  return isPlain.test(name) ? name : name.replace(/[^0-9a-z]/g, "-");
}

const isPlain = /^[0-9a-z-]*$/;

function isImpersonation(field: Field): boolean {
  return plain(field.name).startsWith("impersonate-");
}

type Rules = { readonly strips: FieldRule | undefined; readonly drops: FieldRule };

/** The rules of each policy, shared by all clients of a listener or host. */
const rulesOf = new WeakMap<IdentityPolicy, Rules>();

function rulesUnder(policy: AssertingPolicy): Rules {
  const known = rulesOf.get(policy);
  if (known !== undefined) return known;
  const strips = identityRule(policy.names ?? usualNames);
  const rules = { strips, drops: (field: Field) => field.role === role.authorization || strips(field) };
  rulesOf.set(policy, rules);
  return rules;
}

function identityRule(names: HeaderNames): FieldRule {
  const usual = "x-remote-";
  const own = [...names.user, ...names.uid, ...names.group].map((name) => plain(name));
  const prefixes = [usual, ...names.extraPrefixes.map((prefix) => plain(prefix))];
  const isUsual = [...own, ...prefixes].every((name) => name.startsWith(usual));
  // The decoder has given all header fields whose names begin with x-remote- the role `identity` (h2/core/field.ts), so
  // their names need not be compared here.
  if (isUsual) return (field) => field.role === role.identity && !isImpersonation(field);
  const words = new Set(own);
  return (field) => {
    const name = plain(field.name);
    return words.has(name) || prefixes.some((prefix) => name.startsWith(prefix));
  };
}
