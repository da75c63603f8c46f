/**
 * One header field. Octets are held as latin1 strings, so what came in goes out byte for byte. A Field is immutable
 * and shared: a repeated field is the same object in every block that an HPACK table serves it to, so whatever is
 * worked out here (role, fault, key) is worked out once.
 */

/** What a name means to the message rules of RFC 9113 §8; everything else is `ordinary`. */
export const role = {
  ordinary: 0,
  method: 1,
  scheme: 2,
  path: 3,
  authority: 4,
  status: 5,
  unknownPseudo: 6,
  connectionSpecific: 7,
  te: 8,
  contentLength: 9,
  host: 10,
  authorization: 11,
  auditId: 12,
  forwardedFor: 13,
  expect: 14,
  /** Besides `authorization`: what proves who asks, and what says it. No table may keep them (RFC 7541 §7.1.3). */
  credential: 15,
  identity: 16,
  userAgent: 17,
} as const;
export type Role = (typeof role)[keyof typeof role];

const roles = new Map<string, Role>([
  [":method", role.method],
  [":scheme", role.scheme],
  [":path", role.path],
  [":authority", role.authority],
  [":status", role.status],
  ["connection", role.connectionSpecific],
  ["keep-alive", role.connectionSpecific],
  ["proxy-connection", role.connectionSpecific],
  ["transfer-encoding", role.connectionSpecific],
  ["upgrade", role.connectionSpecific],
  ["te", role.te],
  ["content-length", role.contentLength],
  ["host", role.host],
  ["authorization", role.authorization],
  ["audit-id", role.auditId],
  ["x-forwarded-for", role.forwardedFor],
  ["expect", role.expect],
  ["user-agent", role.userAgent],
  ["cookie", role.credential],
  ["set-cookie", role.credential],
  ["proxy-authorization", role.credential],
]);

/**
 * Where the apiserver reads identities that others assert; what follows varies (`-user`, `-extra-...`). With any mark for
 * `-`: some servers behind it take `_` for it, or all of them (A39).
 */
const identityName = /^(?:x[^0-9a-z]remote[^0-9a-z]|impersonate[^0-9a-z])/;

/** RFC 9110 §5.6.2 token, lower case as RFC 9113 §8.2.1 demands. */
const goodName = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/;
/** No CTL but HTAB, no DEL; obs-text (0x80-0xff) is let through as it came (RFC 9110 §5.5). */
const goodValue = /^[\t\x20-\x7e\x80-\xff]*$/;

export class Field {
  readonly name: string;
  readonly value: string;
  readonly role: Role;
  /** RFC 7541 §4.1: what one entry costs a table or a header list. */
  readonly size: number;
  /** Never to be put in any table again, on any hop (RFC 7541 §7.1.3): it came so, or is a credential or identity. */
  readonly isNeverIndexed: boolean;
  #key = "";
  /** Null until asked for: a field that a limit cuts off costs no look at its octets (A7). */
  #fault: string | undefined | null = null;

  constructor(name: string, value: string, isNeverIndexed = false) {
    this.name = name;
    this.value = value;
    this.role = roleOf(name);
    this.size = name.length + value.length + 32;
    this.isNeverIndexed = isNeverIndexed || isSensitive(this.role);
  }

  /** Why this field makes its message malformed by itself (RFC 9113 §8.2.1), or undefined. Names no value. */
  get fault(): string | undefined {
    if (this.#fault === null) this.#fault = faultOf(this);
    return this.#fault;
  }

  /** Name and value as one string, the key of an encoder's table; made on first use. */
  get key(): string {
    if (this.#key === "") this.#key = `${this.name}\0${this.value}`;
    return this.#key;
  }
}

function roleOf(name: string): Role {
  const known = roles.get(name);
  if (known !== undefined) return known;
  if (name.startsWith(":")) return role.unknownPseudo;
  return identityName.test(name) ? role.identity : role.ordinary;
}

function isSensitive(of: Role): boolean {
  return of === role.authorization || of === role.credential || of === role.identity;
}

/** Has the name a role that no other name has? Then it is well-formed and needs no second look. */
function isKnownName(of: Role): boolean {
  return of !== role.ordinary && of !== role.unknownPseudo && of !== role.identity;
}

function faultOf({ name, value, role: of }: Field): string | undefined {
  if (!isKnownName(of) && !goodName.test(name.startsWith(":") ? name.slice(1) : name))
    return "field name is not a lower-case token";
  if (!goodValue.test(value)) return "field value has a control character";
  return isBlank(value.charCodeAt(0)) || isBlank(value.charCodeAt(value.length - 1))
    ? "field value has a blank at its edge"
    : undefined;
}

function isBlank(octet: number): boolean {
  return octet === 0x20 || octet === 0x09;
}
