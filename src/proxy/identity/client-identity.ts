/**
 * The identity that the proxy asserts for a client with a certificate, and the fields that such a client may not send
 * itself (D9, A39-A42). Pure: from policy and certificate it makes an Identity, once for each socket.
 */

import { Failure } from "../../base/failure.ts";
import type { HeaderNames } from "../../config/cluster.ts";
import type { IdentityPolicy } from "../../config/config.ts";
import { Field, role } from "../../h2/core/field.ts";
import { subjectOf } from "./subject.ts";

/**
 * A client is disconnected this long before its certificate expires. A client with a new certificate presents it on
 * the next connection and never gets 401 for the old one. Kubelets renew after 70 to 90 % of a certificate's
 * lifetime.
 */
export const certificateLeaveMs = 5000;

/** How a client is identified upstream: by its own credential, by the proxy's assertion, or not at all (refused). */
export type Identity = Unidentified | Refused | Asserted;

/** Selects fields of a request. */
export type FieldRule = (field: Field) => boolean;

type Common = {
  /**
   * True for a field that names an identity (X-Remote-* and the configured names, in any spelling). No client may send
   * one where the listener or host asserts identities, with or without a certificate. Undefined: all fields pass.
   */
  readonly strips: FieldRule | undefined;
};

/** It presented no certificate, or one without a common name: for the apiserver that is the same. */
export type Unidentified = Common & { readonly kind: "none" };

/** `mayUseBearer`: true if a bearer credential is accepted all the same, as at the apiserver. */
export type Refused = Common & {
  readonly kind: "refused";
  readonly failure: Failure;
  readonly mayUseBearer: boolean;
};

export type Asserted = Common & {
  readonly kind: "asserted";
  /** Its user name. */
  readonly user: string;
  /** The trust class of its requests. Connections of that class carry the proxy's own credential, and no other requests. */
  readonly trust: AssertedTrust;
  /** Added after all fields of the client's own. */
  readonly fields: readonly Field[];
  /** True for a field that `strips` selects, and for Authorization: the certificate takes precedence over any bearer. */
  readonly drops: FieldRule;
  /** True for a field with which the client asks to impersonate, where only the apiserver could authorize that. */
  readonly isPresumptuous: FieldRule;
  /** When the certificate, or the first one of its chain, expires: milliseconds since 1970. */
  readonly notAfter: number;
};

export type AssertedTrust = "front-proxy" | "impersonate";

/** A client's certificate after the handshake. */
export type PeerCertificate = {
  readonly der: Uint8Array;
  /** SHA-256 of `der` in lower-case hexadecimal digits, without colons. */
  readonly fingerprint: string;
  readonly notAfter: number;
  /** Why it does not lead to the client CA, in OpenSSL's words; undefined if it does. */
  readonly problem: string | undefined;
};

/** A client without TLS, or of a listener that ignores certificates. */
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

/** The names of kube-apiserver's documentation, which kubeadm sets. */
const usualNames: HeaderNames = {
  user: ["x-remote-user"],
  uid: ["x-remote-uid"],
  group: ["x-remote-group"],
  extraPrefixes: ["x-remote-extra-"],
};

/** Returns the identity of a client that presented this certificate. */
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

/** The part of an asserted identity that depends on the certificate's subject. */
type Assertion = Pick<Asserted, "user" | "trust" | "fields" | "isPresumptuous">;

/** Returns what the proxy asserts for this certificate; a string: why it is refused; undefined: it names no user. */
function assertionFor(
  { der, fingerprint, problem }: PeerCertificate,
  policy: AssertingPolicy,
): Assertion | string | undefined {
  if (problem !== undefined) return `Bad client certificate: ${problem}`;
  return policy.clientCerts === "ActAsImpersonator" ? lent : namedIn(der, fingerprint, policy);
}

/** The assertion of the user that the certificate's subject names. */
function namedIn(
  der: Uint8Array,
  fingerprint: string,
  policy: Exclude<AssertingPolicy, { readonly clientCerts: "ActAsImpersonator" }>,
): Assertion | string | undefined {
  const subject = subjectOf(der);
  if (subject instanceof Failure) return subject.message;
  const { commonName: name, organizations: groups, uids } = subject;
  if (name === "") return undefined;
  // The apiserver accepts neither (x509.go, parseUIDFromCert).
  if (uids.length > 1 || uids[0] === "") return "The certificate's uid is empty or not the only one";
  if (policy.clientCerts === "Impersonate" && name === anonymous)
    return `${anonymous} cannot be impersonated with a certificate's groups`;
  const user = { name, uid: uids[0], groups, fingerprint };
  const assertion =
    policy.clientCerts === "FrontProxy" ? frontProxyAssertion(user, policy.names) : impersonation(user);
  return assertion.fields.every(({ fault }) => fault === undefined)
    ? assertion
    : "The certificate's subject has bytes that no header field may carry";
}

/**
 * Selects the fields and trailers that do not go upstream; undefined: all go. `asserted`: the identity that the proxy
 * asserts.
 */
export function dropsOf(identity: Identity, asserted: Asserted | undefined): FieldRule | undefined {
  return asserted === undefined ? identity.strips : asserted.drops;
}

/**
 * When a client should reconnect: shortly before its certificate expires, or when it expires if less time is left.
 * `wallMs` is the present; all in ms since 1970.
 */
export function leavesAt(identity: Identity, wallMs: number): number {
  if (identity.kind !== "asserted") return Number.POSITIVE_INFINITY;
  const early = identity.notAfter - certificateLeaveMs;
  return early > wallMs ? early : identity.notAfter;
}

type AssertingPolicy = Exclude<IdentityPolicy, { readonly clientCerts: "Reject" }>;

/** Impersonated, this user is in system:unauthenticated, whatever groups are named. */
const anonymous = "system:anonymous";

type User = {
  readonly name: string;
  readonly uid: string | undefined;
  readonly groups: readonly string[];
  readonly fingerprint: string;
};

/** The fields of the apiserver's authenticating proxy (k8s.io/apiserver, requestheader.go), which this proxy is then. */
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
  // The key has a slash, which no field name may have: the apiserver undoes the escape.
  fields.push(fieldOf(`${prefix}authentication.kubernetes.io%2fcredential-id`, `X509SHA256=${fingerprint}`));
  // The apiserver gets the client's identity, so it authorizes impersonation itself.
  return { user: name, trust: "front-proxy", fields, isPresumptuous: () => false };
}

/**
 * The fields that impersonate the user under the proxy's own credential, which may impersonate. Without the extra field:
 * it would need a permission of its own (userextras), and no authorizer evaluates it.
 */
function impersonation({ name, uid, groups }: User): Assertion {
  const fields = [fieldOf("impersonate-user", name)];
  if (uid !== undefined) fields.push(fieldOf("impersonate-uid", uid));
  const own = groupFields("impersonate-group", groups);
  fields.push(...own);
  // The apiserver adds the groups of service accounts to a service account without groups, which a certificate does not
  // grant (endpoints/filters/impersonation, groupsSpecified). The one group that both have prevents that.
  if (own.length === 0 && name.startsWith("system:serviceaccount:"))
    fields.push(fieldOf("impersonate-group", "system:authenticated"));
  return { user: name, trust: "impersonate", fields, isPresumptuous: isImpersonation };
}

/** The proxy's own credential as it is: every client with a certificate of the client CA may use it, and sends no other. */
const lent: Assertion = {
  user: "impersonator",
  trust: "impersonate",
  fields: [],
  isPresumptuous: () => false,
};

/** One field each, since a group's name may contain a comma. The apiserver ignores an empty one. */
function groupFields(name: string, groups: readonly string[]): Field[] {
  return groups.filter((group) => group !== "").map((group) => fieldOf(name, group));
}

/** Fields hold bytes as latin1; the apiserver reads them as UTF-8. */
function fieldOf(name: string, value: string): Field {
  return new Field(name, Buffer.from(value).toString("latin1"), true);
}

/**
 * The name with "-" for all but letters and digits: servers behind the apiserver may read `x_remote_user` as
 * `x-remote-user`, as CGI does (RFC 3875 §4.1.18), and older Apaches any other character.
 */
function plain(name: string): string {
  return isPlain.test(name) ? name : name.replace(/[^0-9a-z]/g, "-");
}

const isPlain = /^[0-9a-z-]*$/;

function isImpersonation(field: Field): boolean {
  return plain(field.name).startsWith("impersonate-");
}

type Rules = { readonly strips: FieldRule | undefined; readonly drops: FieldRule };

/** One for all clients of a listener or host. */
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
  // A field's role already marks the usual names, so most fields need no comparison.
  if (isUsual) return (field) => field.role === role.identity && !isImpersonation(field);
  const words = new Set(own);
  return (field) => {
    const name = plain(field.name);
    return words.has(name) || prefixes.some((prefix) => name.startsWith(prefix));
  };
}
