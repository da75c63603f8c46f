/**
 * Returns errors in the format of Kubernetes. Clients act on `code` and `reason`, and show `message`. Wording and
 * details are those of k8s.io/apimachinery/pkg/api/errors, because some clients compare parts of them.
 */
import { statusOf } from "../../src/kube/status.ts";
import type { JsonMap } from "./json.ts";
import type { Resource } from "./resources.ts";

/** A rejection of a request. It is returned and never thrown. */
export class Refusal {
  readonly code: number;
  readonly status: JsonMap;

  constructor(code: number, reason: string, message: string, details?: JsonMap) {
    this.code = code;
    this.status = statusOf({ message, reason, details, code });
  }
}

function qualified({ plural, group }: Resource): string {
  return group === "" ? plural : `${plural}.${group}`;
}

function detailsOf({ plural, group }: Resource, name: string): JsonMap {
  return { name, ...(group === "" ? {} : { group }), kind: plural };
}

export function notFound(resource: Resource, name: string): Refusal {
  const message = `${qualified(resource)} "${name}" not found`;
  return new Refusal(404, "NotFound", message, detailsOf(resource, name));
}

/** Returns the Refusal for a path whose resource type is unknown. */
export function noSuchPath(): Refusal {
  return new Refusal(404, "NotFound", "the server could not find the requested resource", {});
}

export function alreadyExists(resource: Resource, name: string): Refusal {
  const message = `${qualified(resource)} "${name}" already exists`;
  return new Refusal(409, "AlreadyExists", message, detailsOf(resource, name));
}

export function conflict(resource: Resource, name: string, why: string): Refusal {
  const message = `Operation cannot be fulfilled on ${qualified(resource)} "${name}": ${why}`;
  return new Refusal(409, "Conflict", message, detailsOf(resource, name));
}

/** The message for an update whose resourceVersion is not the current one. */
export const modified =
  "the object has been modified; please apply your changes to the latest version and try again";

export function expired(version: number, oldest: number): Refusal {
  return new Refusal(410, "Expired", `too old resource version: ${version} (${oldest})`);
}

export function tooLargeVersion(version: number, current: number): Refusal {
  const cause = { reason: "ResourceVersionTooLarge", message: "Too large resource version" };
  return new Refusal(504, "Timeout", `Timeout: Too large resource version: ${version}, current: ${current}`, {
    causes: [cause],
    retryAfterSeconds: 1,
  });
}

export function invalid(resource: Resource, name: string, field: string, why: string): Refusal {
  const causes = [{ reason: "FieldValueInvalid", message: why, field }];
  const message = `${resource.kind} "${name}" is invalid: ${field}: ${why}`;
  return new Refusal(422, "Invalid", message, { name, kind: resource.kind, causes });
}

export function badRequest(message: string): Refusal {
  return new Refusal(400, "BadRequest", message);
}

export function methodNotAllowed(): Refusal {
  const message = "the server does not allow this method on the requested resource";
  return new Refusal(405, "MethodNotAllowed", message, {});
}

export function notAcceptable(offered: string): Refusal {
  const message = `only the following media types are accepted: ${offered}`;
  return new Refusal(406, "NotAcceptable", message, {});
}

export function tooLarge(limitBytes: number): Refusal {
  const message = `Request entity too large: limit is ${limitBytes}`;
  return new Refusal(413, "RequestEntityTooLarge", message);
}

export function unsupportedMediaType(accepted: string): Refusal {
  const message = `the body of the request was in an unknown format - accepted media types include: ${accepted}`;
  return new Refusal(415, "UnsupportedMediaType", message, {});
}

export function internalError(why: string): Refusal {
  return new Refusal(500, "InternalError", `Internal error occurred: ${why}`, { causes: [{ message: why }] });
}
