/**
 * One header field. Its text is in latin1, so that its bytes are forwarded unchanged. An HPACK table returns the same
 * Field object for each repetition of a field, so the derived properties (role, fault, key) are computed once.
 */

/**
 * The role of a field. The field's name determines the role, and the role decides which rules for messages (RFC 9113
 * §8) apply to the field. `ordinary`: no special rule.
 */
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
  /**
   * `credential`: a field besides `authorization` that authenticates a client. `identity`: a field that asserts an
   * identity. A field with either role must not enter an HPACK table, because other clients use the same table and
   * could guess the field's value (RFC 7541 §7.1.3).
   */
  credential: 15,
  identity: 16,
  userAgent: 17,
  /** A backend's report of its load (proxy/load/load-report.ts). */
  loadReport: 18,
  /** The trace context of a request (proxy/observe/trace-parent.ts). */
  traceParent: 19,
  /** The other field from which kube-apiserver takes the address of a client (apimachinery util/net, SourceIPs). */
  realIp: 20,
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
  ["x-real-ip", role.realIp],
  ["expect", role.expect],
  ["user-agent", role.userAgent],
  ["endpoint-load-metrics", role.loadReport],
  ["endpoint-load-metrics-bin", role.loadReport],
  ["traceparent", role.traceParent],
  ["cookie", role.credential],
  ["set-cookie", role.credential],
  ["proxy-authorization", role.credential],
]);

/**
 * Matches header names with which a proxy asserts an identity to the apiserver (`x-remote-user`,
 * `impersonate-extra-...`). In place of a `-`, any character except letters and digits matches, because some servers
 * read `_` and other characters as `-` (A39).
 */
const identityName = /^(?:x[^0-9a-z]remote[^0-9a-z]|impersonate[^0-9a-z])/;

/** Matches a token (RFC 9110 §5.6.2) in lower case, as RFC 9113 §8.2.1 requires. */
const goodName = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/;
/** Matches text without control characters except HTAB. Bytes above 0x7f are allowed (RFC 9110 §5.5). */
const goodValue = /^[\t\x20-\x7e\x80-\xff]*$/;

/** The id of the last Field that was created. */
let count = 0;

export class Field {
  readonly name: string;
  readonly value: string;
  readonly role: Role;
  /** A number that identifies this object, by which an HPACK encoder finds the object's table entry. */
  readonly id: number;
  /** Index of the name in HPACK's static table, set by an encoder; 0: not in the table; -1: not known yet. */
  nameIndex: number;
  /** Size in bytes with which this field counts in an HPACK table and towards a header list limit (RFC 7541 §4.1). */
  readonly size: number;
  /**
   * True if no hop may put this field into an HPACK table (RFC 7541 §7.1.3), because it is a secret or its sender
   * marked it as never indexed.
   */
  readonly isNeverIndexed: boolean;
  #key = "";
  /** The result of `fault`; null: not computed yet. */
  #fault: string | undefined | null = null;

  /** `namesake`: another field with the same name. Its role is copied, which saves a lookup. */
  constructor(name: string, value: string, isNeverIndexed = false, namesake?: Field) {
    count = (count + 1) & 0x3fff_ffff;
    this.id = count;
    this.name = name;
    this.value = value;
    this.role = namesake === undefined ? roleOf(name) : namesake.role;
    this.nameIndex = namesake === undefined ? -1 : namesake.nameIndex;
    this.size = name.length + value.length + 32;
    this.isNeverIndexed = isNeverIndexed || isSensitive(this.role);
  }

  /** The rule of RFC 9113 §8.2.1 that this field violates, as a text without the field's value; undefined: none. */
  get fault(): string | undefined {
    if (this.#fault === null) this.#fault = faultOf(this);
    return this.#fault;
  }

  /** True if the value begins or ends with a space or a tab, which RFC 9113 §8.2.1 forbids. */
  get hasOuterBlanks(): boolean {
    const { value } = this;
    return isBlank(value.charCodeAt(0)) || isBlank(value.charCodeAt(value.length - 1));
  }

  equals(other: Field | undefined): boolean {
    if (this === other) return true;
    const isSame = this.name === other?.name && this.value === other.value;
    return isSame && this.isNeverIndexed === other.isNeverIndexed;
  }

  trimmed(): Field {
    return new Field(this.name, withoutBlanks(this.value), this.isNeverIndexed, this);
  }

  /** Name and value as one string, by which an HPACK encoder finds the field in its table. */
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

/** True if only fixed, well-formed names have this role. For any other role, the name must be checked. */
function isKnownName(of: Role): boolean {
  return of !== role.ordinary && of !== role.unknownPseudo && of !== role.identity;
}

function faultOf({ name, value, role: of }: Field): string | undefined {
  if (!isKnownName(of) && !goodName.test(name.startsWith(":") ? name.slice(1) : name))
    return "field name is not a lower-case token";
  return goodValue.test(value) ? undefined : "field value has a control character";
}

/** Returns the text without blanks at both ends (RFC 9110 §5.6.3), in linear time, unlike a regular expression. */
export function withoutBlanks(text: string): string {
  let from = 0;
  let to = text.length;
  while (isBlank(text.charCodeAt(from))) from += 1;
  while (to > from && isBlank(text.charCodeAt(to - 1))) to -= 1;
  return text.slice(from, to);
}

function isBlank(byte: number): boolean {
  return byte === 0x20 || byte === 0x09;
}
