/**
 * Step 3 of 7: who asks, and what does the backend learn of it?
 *
 * Pure. A bearer credential passes untouched. The fields that go upstream are the client's own, in their order and
 * number, with X-Forwarded-For and Audit-ID put right. Next: choose.
 */
import { randomBytes } from "node:crypto";
import { Failure } from "../failure.ts";
import { Field, role } from "../h2/field.ts";
import type { RequestHead } from "../h2/fields.ts";
import type { Client } from "./client.ts";

export type Identified = { readonly fields: Field[]; readonly auditId: string };

const https = new Field(":scheme", "https");
/** Ours, so that ids of several proxies never meet; the rest counts (RFC 9562's form, version 4). */
const idPrefix = randomBytes(9)
  .toString("hex")
  .replace(/^(.{8})(.{4})(.{3})(.{3})$/, "$1-$2-4$3-a$4-");
let idCount = 0;

function newAuditId(): string {
  idCount += 1;
  return idPrefix + idCount.toString(16).padStart(12, "0");
}

export function identify(request: RequestHead, client: Client): Identified | Failure {
  if (client.hasCertificate) {
    return new Failure(
      "client-certificate",
      "client",
      "This proxy takes no client certificates: use a bearer token",
    );
  }
  const fields: Field[] = [];
  let auditId = "";
  let forwardedFor = "";
  for (const field of request.fields) {
    if (field.role === role.forwardedFor) {
      forwardedFor += `${field.value}, `;
      continue;
    }
    if (field.role === role.auditId) auditId = field.value;
    fields.push(field.role === role.scheme ? https : field);
  }
  // Anyone may write X-Forwarded-For, so only a configured forwarder is believed. One list in one field: the
  // apiserver reads the first field of that name and no other (apimachinery util/net, SourceIPs).
  const isBelieved = forwardedFor !== "" && client.isTrustedForwarder;
  const { name, value } = client.forwardedFor;
  fields.push(isBelieved ? new Field(name, forwardedFor + value) : client.forwardedFor);
  if (auditId === "") {
    auditId = newAuditId();
    fields.push(new Field("audit-id", auditId));
  }
  return { fields, auditId };
}
