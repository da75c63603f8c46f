/**
 * Decides which identity and which header fields the backend gets with a request.
 *
 * A bearer token is forwarded unchanged. The backend gets the client's own header fields, in the same order and number,
 * with X-Forwarded-For and Audit-ID set, and without X-Real-IP. For a client with a certificate, the proxy adds the
 * identity in the certificate (asserted-identity.ts). If a listener or host asserts identities, the proxy drops the X-Remote-* fields
 * of all its clients.
 */
import { randomBytes } from "node:crypto";
import type { Clock } from "../../base/clock.ts";
import { clipped } from "../../base/detach.ts";
import { Failure } from "../../base/failure.ts";
import { limits } from "../../base/limits.ts";
import { Field, role } from "../../h2/core/field.ts";
import type { RequestHead } from "../../h2/core/fields.ts";
import { type Asserted, dropsOf, type FieldRule, type Identity } from "../identity/asserted-identity.ts";
import { isBearer } from "../identity/trust.ts";
import type { Client } from "./client.ts";

/** Maximum length of a client's Audit-ID in the journal. Audit-IDs of the proxy and of client-go have 36 characters. */
const auditIdChars = 256;

export type Identified = {
  readonly fields: Field[];
  /** The audit id as the journal records it, clipped to `auditIdChars`. The backend gets the whole id. */
  readonly auditId: string;
  /** The identity that the proxy asserts; undefined: the client's own credential goes upstream. */
  readonly asserted: Asserted | undefined;
};

const https = new Field(":scheme", "https");
const anyAuditId = new Field("audit-id", "");
/**
 * The beginning of this process's audit ids (RFC 9562, version 4). It is random, so that the ids of several proxies
 * never collide. A counter follows.
 */
const idPrefix = randomBytes(9)
  .toString("hex")
  .replace(/^(.{8})(.{4})(.{3})(.{3})$/, "$1-$2-4$3-a$4-");
let idCount = 0;

function newAuditId(): string {
  idCount += 1;
  return idPrefix + idCount.toString(16).padStart(12, "0");
}

export function identify(
  request: RequestHead,
  client: Client,
  clock: Pick<Clock, "wall">,
): Identified | Failure {
  if (!client.mayAsk(request.authority))
    return new Failure("misdirected", "client", "Another host: use another connection for this name");
  const asserted = assertedIn(request.fields, client.identity, clock);
  if (asserted instanceof Failure) return asserted;
  const { fields, auditId, forwardedFor } = allowedFieldsOf(
    request,
    client,
    dropsOf(client.identity, asserted),
  );
  // X-Forwarded-For is kept only from a configured forwarder, because any client may write it. All entries go into one
  // field, because the apiserver reads only the first field of that name (apimachinery util/net, SourceIPs). A list
  // longer than `limits.fieldBytes` is dropped, because it would end an upstream connection that many clients share
  // (A7).
  const { name, value } = client.forwardedFor;
  const isFitting = forwardedFor !== "" && forwardedFor.length + value.length <= limits.fieldBytes;
  const isBelieved = isFitting && client.isTrustedForwarder;
  fields.push(isBelieved ? new Field(name, forwardedFor + value) : client.forwardedFor);
  const id = auditId === "" ? newAuditId() : auditId;
  if (auditId === "") fields.push(new Field(anyAuditId.name, id, false, anyAuditId));
  // Added after the client's fields were filtered, so that nothing in them can remove the identity fields (A40).
  if (asserted !== undefined) fields.push(...asserted.fields);
  return { fields, auditId: id, asserted };
}

type ClientFields = { readonly fields: Field[]; readonly auditId: string; readonly forwardedFor: string };

function allowedFieldsOf(
  request: RequestHead,
  { isTrustedForwarder }: Client,
  drops: FieldRule | undefined,
): ClientFields {
  const fields: Field[] = [];
  let auditId = "";
  let forwardedFor = "";
  for (const field of request.fields) {
    if (field.role === role.forwardedFor) {
      forwardedFor += `${field.value}, `;
      continue;
    }
    // The apiserver's audit log has X-Real-IP among the addresses of the client, too.
    if (field.role === role.realIp && !isTrustedForwarder) continue;
    if (drops?.(field) === true) continue;
    if (field.role === role.auditId) auditId = clipped(field.value, auditIdChars);
    fields.push(field.role === role.scheme ? https : field);
  }
  return { fields, auditId, forwardedFor };
}

/**
 * Returns the identity in the client's certificate, which takes precedence over a bearer token. If the certificate is
 * invalid or has expired, a bearer token is used instead, as at the apiserver.
 */
function assertedIn(
  fields: readonly Field[],
  identity: Identity,
  clock: Pick<Clock, "wall">,
): Asserted | undefined | Failure {
  if (identity.kind === "none") return undefined;
  if (identity.kind === "refused")
    return identity.mayUseBearer && fields.some((field) => isBearer(field)) ? undefined : identity.failure;
  if (identity.notAfter <= clock.wall())
    return fields.some((field) => isBearer(field))
      ? undefined
      : new Failure("unauthenticated", "client", "The client certificate has expired");
  if (!fields.some((field) => identity.isPresumptuous(field))) return identity;
  const message =
    "Impersonate-* is not allowed with a client certificate: this proxy impersonates such clients itself";
  return new Failure("client-certificate", "client", message);
}
