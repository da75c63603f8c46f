/**
 * What we say of a client that has shown a certificate, and what it may not say itself (D9, A39-A42). Pure: policy and
 * certificate in, an Identity out, made once for each socket.
 */

import { Failure } from "../../base/failure.ts";
import { limits } from "../../base/limits.ts";
import type { HeaderNames } from "../../config/cluster.ts";
import type { IdentityPolicy } from "../../config/config.ts";
import { Field, role } from "../../h2/core/field.ts";
import { subjectOf } from "./subject.ts";

/** Whose word goes up: the client's own, ours for it, or nobody's. */
export type Identity = Unvouched | Refused | Vouched;

/** Selects fields of a request. */
export type FieldRule = (field: Field) => boolean;

type Common = {
  /**
   * True for a field that names an identity (X-Remote-* and the configured names, in any spelling): no client may send
   * one where the listener or host asserts identities, with or without a certificate. Undefined: all fields pass.
   */
  readonly strips: FieldRule | undefined;
};

/** It showed none, or one that names nobody: for the apiserver that is the same. */
export type Unvouched = Common & { readonly kind: "none" };

/** `mayUseBearer`: a bearer credential counts all the same, as it would at the apiserver. */
export type Refused = Common & {
  readonly kind: "refused";
  readonly failure: Failure;
  readonly mayUseBearer: boolean;
};

export type Vouched = Common & {
  readonly kind: "vouched";
  /** Its user. */
  readonly user: string;
  /** Under which of our credentials it travels; never on an upstream connection without it, nor anyone else on that upstream connection. */
  readonly trust: VouchedTrust;
  /** Put behind everything of the client's own. */
  readonly fields: readonly Field[];
  /** True for a field that `strips` selects, and for Authorization: the certificate counts before any bearer. */
  readonly drops: FieldRule;
  /** Does the client ask to be somebody else, where only the apiserver could judge whether it may? */
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
  /** Why it does not lead to the client CA, in OpenSSL's words; undefined when it does. */
  readonly problem: string | undefined;
};

/** A client without TLS, or of a listener where certificates mean nothing. */
export const nobody: Unvouched = { kind: "none", strips: undefined };

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

/** Who has shown this certificate. */
export function identityOf(shown: PeerCertificate | undefined, policy: IdentityPolicy): Identity {
  const rules = policy.clientCerts === "Reject" ? passAll : rulesUnder(policy);
  const { strips } = rules;
  if (shown === undefined) return { kind: "none", strips };
  const identity = policy.clientCerts === "Reject" ? rejected : asked(shown, policy);
  return identity.kind === "vouched" ? { ...identity, ...rules } : { ...identity, strips };
}

/** Who a certificate is of, where that counts. */
function asked(shown: PeerCertificate, policy: Asserting): Told {
  const { notAfter, problem } = shown;
  if (problem !== undefined) return refused("unauthenticated", `Bad client certificate: ${problem}`, true);
  if (policy.clientCerts === "ActAsImpersonator")
    return { kind: "vouched", user: "impersonator", ...lent, notAfter };
  return named(shown, policy);
}

/** Who the certificate says that it is of. */
function named(
  { der, fingerprint, notAfter }: PeerCertificate,
  policy: Exclude<Asserting, { readonly clientCerts: "ActAsImpersonator" }>,
): Told {
  const subject = subjectOf(der);
  if (subject instanceof Failure) return refused("unauthenticated", subject.message, true);
  const { commonName, organizations, uids } = subject;
  if (commonName === "") return { kind: "none" };
  // The apiserver takes neither (x509.go, parseUIDFromCert).
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

/** The fields and trailers that do not go upstream; undefined: all go. `vouched`: with this request our own word goes up. */
export function dropsOf(identity: Identity, vouched: Vouched | undefined): FieldRule | undefined {
  return vouched === undefined ? identity.strips : vouched.drops;
}

/**
 * From when on a client is better off on another connection: shortly before its certificate ends; when it ends, for one
 * that came later than that, or with what is over by then. `wallMs` is the present; all since 1970.
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

/** What is said of a client, but for what it may not say itself. */
type Told = Omit<Unvouched, "strips"> | Omit<Refused, "strips"> | Omit<Vouched, "strips" | "drops">;

type Asserting = Exclude<IdentityPolicy, { readonly clientCerts: "Reject" }>;

/** Impersonated, it is in system:unauthenticated, whatever groups are named. */
const anonymous = "system:anonymous";

type User = {
  readonly name: string;
  readonly uid: string | undefined;
  readonly groups: readonly string[];
  readonly fingerprint: string;
};

type Word = Pick<Vouched, "trust" | "fields" | "isPresumptuous">;

/** For the apiserver's authenticating proxy (k8s.io/apiserver, requestheader.go), which this one is then. */
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
  // Its key has a slash, which no field name may have: the apiserver undoes the escape.
  fields.push(fieldOf(`${prefix}authentication.kubernetes.io%2fcredential-id`, `X509SHA256=${fingerprint}`));
  // Whom it may impersonate is judged by the apiserver, which is told who asks.
  return { trust: "front-proxy", fields, isPresumptuous: () => false };
}

/**
 * Under a credential of our own, which may impersonate. Without the extra: it would need a right of its own
 * (userextras), and says nothing that an authorizer asks for.
 */
function impersonated({ name, uid, groups }: User): Word {
  const fields = [fieldOf("impersonate-user", name)];
  if (uid !== undefined) fields.push(fieldOf("impersonate-uid", uid));
  const own = groupFields("impersonate-group", groups);
  fields.push(...own);
  // To a service account without groups the apiserver adds those of service accounts, which a certificate does not give
  // (endpoints/filters/impersonation, groupsSpecified). The one group that both have keeps it from that.
  if (own.length === 0 && name.startsWith("system:serviceaccount:"))
    fields.push(fieldOf("impersonate-group", "system:authenticated"));
  return { trust: "impersonate", fields, isPresumptuous: isImpersonation };
}

/** Our own credential itself: whoever has a certificate of the client CA is its owner, and says nothing by any other. */
const lent: Word = {
  trust: "impersonate",
  fields: [],
  isPresumptuous: () => false,
};

/** One field each, since a group's name may hold a comma; an empty one counts for nothing at the apiserver. */
function groupFields(name: string, groups: readonly string[]): Field[] {
  return groups.filter((group) => group !== "").map((group) => fieldOf(name, group));
}

/** Fields hold octets as latin1; the apiserver reads them as UTF-8. */
function fieldOf(name: string, value: string): Field {
  return new Field(name, Buffer.from(value).toString("latin1"), true);
}

/**
 * With "-" for all but letters and digits: servers behind the apiserver may take `x_remote_user` for `x-remote-user`, as
 * CGI has it (RFC 3875 §4.1.18), and older Apaches any other mark.
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
  // A field knows by itself whether it has one of the usual names, so that most cost no look at theirs.
  if (isUsual) return (field) => field.role === role.identity && !isImpersonation(field);
  const words = new Set(own);
  return (field) => {
    const name = plain(field.name);
    return words.has(name) || prefixes.some((prefix) => name.startsWith(prefix));
  };
}
