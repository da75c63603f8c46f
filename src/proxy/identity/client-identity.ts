/**
 * The identity that the proxy asserts for a client with a certificate, and the fields that such a client may not send
 * itself (D9, A39-A42). Pure: from policy and certificate it makes an Identity, once for each socket.
 */

import { Failure } from "../../base/failure.ts";
import { limits } from "../../base/limits.ts";
import type { HeaderNames } from "../../config/cluster.ts";
import type { IdentityPolicy } from "../../config/config.ts";
import { Field, role } from "../../h2/core/field.ts";
import { subjectOf } from "./subject.ts";

/** How a client is identified upstream: by its own credential, by the proxy's assertion, or not at all (refused). */
export type Identity = Unvouched | Refused | Vouched;

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
export type Unvouched = Common & { readonly kind: "none" };

/** `mayUseBearer`: true if a bearer credential is accepted all the same, as at the apiserver. */
export type Refused = Common & {
  readonly kind: "refused";
  readonly failure: Failure;
  readonly mayUseBearer: boolean;
};

export type Vouched = Common & {
  readonly kind: "vouched";
  /** Its user name. */
  readonly user: string;
  /** The trust class of its requests. Connections of that class carry the proxy's own credential, and no other requests. */
  readonly trust: VouchedTrust;
  /** Added after all fields of the client's own. */
  readonly fields: readonly Field[];
  /** True for a field that `strips` selects, and for Authorization: the certificate takes precedence over any bearer. */
  readonly drops: FieldRule;
  /** True for a field with which the client asks to impersonate, where only the apiserver could authorize that. */
  readonly isPresumptuous: FieldRule;
  /** When the certificate, or the first one of its chain, expires: milliseconds since 1970. */
  readonly notAfter: number;
};

export type VouchedTrust = "front-proxy" | "impersonate";

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
export const unidentified: Unvouched = { kind: "none", strips: undefined };

const rejected = refused(
  "client-certificate",
  "This proxy takes no client certificates: use a bearer token",
  false,
);

/** The names of kube-apiserver's documentation, which kubeadm sets. */
const usualNames: HeaderNames = {
  user: ["x-remote-user"],
  uid: ["x-remote-uid"],
  group: ["x-remote-group"],
  extraPrefixes: ["x-remote-extra-"],
};

/** Returns the identity of a client that presented this certificate. */
export function identityOf(shown: PeerCertificate | undefined, policy: IdentityPolicy): Identity {
  const rules = policy.clientCerts === "Reject" ? passAll : rulesUnder(policy);
  const { strips } = rules;
  if (shown === undefined) return { kind: "none", strips };
  const identity = policy.clientCerts === "Reject" ? rejected : asked(shown, policy);
  return identity.kind === "vouched" ? { ...identity, ...rules } : { ...identity, strips };
}

/** The identity in a certificate, where the policy uses it. */
function asked(shown: PeerCertificate, policy: Asserting): Told {
  const { notAfter, problem } = shown;
  if (problem !== undefined) return refused("unauthenticated", `Bad client certificate: ${problem}`, true);
  if (policy.clientCerts === "ActAsImpersonator")
    return { kind: "vouched", user: "impersonator", ...lent, notAfter };
  return named(shown, policy);
}

/** The identity that the certificate's subject names. */
function named(
  { der, fingerprint, notAfter }: PeerCertificate,
  policy: Exclude<Asserting, { readonly clientCerts: "ActAsImpersonator" }>,
): Told {
  const subject = subjectOf(der);
  if (subject instanceof Failure) return refused("unauthenticated", subject.message, true);
  const { commonName, organizations, uids } = subject;
  if (commonName === "") return { kind: "none" };
  // The apiserver accepts neither (x509.go, parseUIDFromCert).
  if (uids.length > 1 || uids[0] === "")
    return refused("unauthenticated", "The certificate's uid is empty or not the only one", true);
  if (policy.clientCerts === "Impersonate" && commonName === anonymous)
    return refused(
      "unauthenticated",
      `${anonymous} cannot be impersonated with a certificate's groups`,
      true,
    );
  const user = { name: commonName, uid: uids[0], groups: organizations, fingerprint };
  const vouched = policy.clientCerts === "FrontProxy" ? asserted(user, policy.names) : impersonated(user);
  if (vouched.fields.every(({ fault }) => fault === undefined))
    return { kind: "vouched", user: commonName, ...vouched, notAfter };
  return refused(
    "unauthenticated",
    "The certificate's subject has octets that no header field may carry",
    true,
  );
}

/**
 * Selects the fields and trailers that do not go upstream; undefined: all go. `vouched`: the identity that the proxy
 * asserts.
 */
export function dropsOf(identity: Identity, vouched: Vouched | undefined): FieldRule | undefined {
  return vouched === undefined ? identity.strips : vouched.drops;
}

/**
 * When a client should reconnect: shortly before its certificate expires, or when it expires if less time is left.
 * `wallMs` is the present; all in ms since 1970.
 */
export function leavesAt(identity: Identity, wallMs: number): number {
  if (identity.kind !== "vouched") return Number.POSITIVE_INFINITY;
  const early = identity.notAfter - limits.certificateLeaveMs;
  return early > wallMs ? early : identity.notAfter;
}

function refused(
  code: "client-certificate" | "unauthenticated",
  message: string,
  mayUseBearer: boolean,
): Omit<Refused, "strips"> {
  return { kind: "refused", failure: new Failure(code, "client", message), mayUseBearer };
}

/** An identity without the rules for the client's own fields. */
type Told = Omit<Unvouched, "strips"> | Omit<Refused, "strips"> | Omit<Vouched, "strips" | "drops">;

type Asserting = Exclude<IdentityPolicy, { readonly clientCerts: "Reject" }>;

/** Impersonated, this user is in system:unauthenticated, whatever groups are named. */
const anonymous = "system:anonymous";

type User = {
  readonly name: string;
  readonly uid: string | undefined;
  readonly groups: readonly string[];
  readonly fingerprint: string;
};

type Word = Pick<Vouched, "trust" | "fields" | "isPresumptuous">;

/** The fields of the apiserver's authenticating proxy (k8s.io/apiserver, requestheader.go), which this proxy is then. */
function asserted({ name, uid, groups, fingerprint }: User, names: HeaderNames): Word {
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
  return { trust: "front-proxy", fields, isPresumptuous: () => false };
}

/**
 * The fields that impersonate the user under the proxy's own credential, which may impersonate. Without the extra field:
 * it would need a permission of its own (userextras), and no authorizer evaluates it.
 */
function impersonated({ name, uid, groups }: User): Word {
  const fields = [fieldOf("impersonate-user", name)];
  if (uid !== undefined) fields.push(fieldOf("impersonate-uid", uid));
  const own = groupFields("impersonate-group", groups);
  fields.push(...own);
  // The apiserver adds the groups of service accounts to a service account without groups, which a certificate does not
  // grant (endpoints/filters/impersonation, groupsSpecified). The one group that both have prevents that.
  if (own.length === 0 && name.startsWith("system:serviceaccount:"))
    fields.push(fieldOf("impersonate-group", "system:authenticated"));
  return { trust: "impersonate", fields, isPresumptuous: isImpersonation };
}

/** The proxy's own credential as it is: every client with a certificate of the client CA may use it, and sends no other. */
const lent: Word = {
  trust: "impersonate",
  fields: [],
  isPresumptuous: () => false,
};

/** One field each, since a group's name may contain a comma. The apiserver ignores an empty one. */
function groupFields(name: string, groups: readonly string[]): Field[] {
  return groups.filter((group) => group !== "").map((group) => fieldOf(name, group));
}

/** Fields hold octets as latin1; the apiserver reads them as UTF-8. */
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

const passAll = { strips: undefined, drops: () => false };

/** One for all clients of a listener or host. */
const rulesOf = new WeakMap<IdentityPolicy, Rules>();

function rulesUnder(policy: Asserting): Rules {
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
