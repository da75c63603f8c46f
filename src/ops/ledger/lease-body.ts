/**
 * Parses the body of a write to a leader lease. A lease is a Lease object, or an annotation of a ConfigMap or Endpoints
 * object (older locks of client-go, tools/leaderelection/resourcelock). The body is an object or a patch, in JSON or
 * protobuf.
 */
import { isRecord, type JsonRecord, parseJson, recordAt, textAt } from "../../base/json.ts";
import { entriesIn, enveloped, type Message, messageIn, numberIn, textIn } from "../../base/protobuf.ts";

export const leaderAnnotation = "control-plane.alpha.kubernetes.io/leader";

export type LeaseRecord = {
  /** Name of the object; "": the body is a patch without a name. */
  readonly name: string;
  /** The new holder; undefined: the write does not change the holder; "": the write releases the lease. */
  readonly holder: string | undefined;
  readonly durationMs: number | undefined;
  /** True if the write sets a renewal time. A write that only sets labels does not renew the lease. */
  readonly isRenewal: boolean;
};

/** Returns the lease in a write's body; undefined: none, or unreadable. `isLease`: the object is a Lease. */
export function leaseRecordIn(body: Buffer, isLease: boolean): LeaseRecord | undefined {
  if (!isLease && !body.includes(leaderAnnotation)) return undefined;
  const object = enveloped(body);
  if (object !== undefined) return isLease ? ofLease(object) : ofAnnotated(object);
  // Bodies in YAML or CBOR are not parsed.
  const parsed = parseJson(body.toString());
  if (Array.isArray(parsed)) return ofJsonPatch(parsed);
  if (!isRecord(parsed)) return undefined;
  return isLease ? ofLeaseJson(parsed) : ofAnnotatedJson(parsed);
}

/** coordination/v1 generated.proto: Lease { 1 metadata  2 spec { 1 holderIdentity  2 leaseDurationSeconds  4 renewTime } } */
function ofLease(object: Message): LeaseRecord {
  const spec = messageIn(object, 2);
  return {
    name: textIn(messageIn(object, 1), 1),
    holder: textIn(spec, 1),
    durationMs: inMs(numberIn(spec, 2)),
    isRenewal: spec?.has(4) === true,
  };
}

/** Reads the lease from the annotations, which are field 12 of an object's metadata. */
function ofAnnotated(object: Message): LeaseRecord | undefined {
  const metadata = messageIn(object, 1);
  const annotation = parseJson(entriesIn(metadata, 12, leaderAnnotation).at(-1) ?? "");
  return isRecord(annotation) ? ofSpec(textIn(metadata, 1), annotation) : undefined;
}

function ofLeaseJson(object: JsonRecord): LeaseRecord | undefined {
  const spec = recordAt(object, "spec");
  return spec && ofSpec(nameIn(object), spec);
}

function ofAnnotatedJson(object: JsonRecord): LeaseRecord | undefined {
  const annotations = recordAt(recordAt(object, "metadata"), "annotations");
  const annotation = parseJson(textAt(annotations, leaderAnnotation));
  return isRecord(annotation) ? ofSpec(nameIn(object), annotation) : undefined;
}

/** Reads a JSON patch (RFC 6902). Ignores operations on paths outside of `spec`. */
function ofJsonPatch(operations: readonly unknown[]): LeaseRecord | undefined {
  const spec: Record<string, unknown> = {};
  for (const operation of operations) {
    if (!isRecord(operation) || typeof operation["path"] !== "string") continue;
    const field = /^\/spec\/(\w+)$/.exec(operation["path"])?.[1];
    if (field !== undefined) spec[field] = operation["value"];
  }
  return Object.keys(spec).length === 0 ? undefined : ofSpec("", spec);
}

/**
 * Reads the fields of a Lease's spec; the annotation has the same fields. A null removes a field, so a null holder
 * releases the lease.
 */
function ofSpec(name: string, spec: JsonRecord): LeaseRecord {
  const seconds = spec["leaseDurationSeconds"];
  return {
    name,
    holder: "holderIdentity" in spec ? textAt(spec, "holderIdentity") : undefined,
    durationMs: inMs(typeof seconds === "number" ? seconds : undefined),
    isRenewal: typeof spec["renewTime"] === "string",
  };
}

function nameIn(object: JsonRecord): string {
  return textAt(recordAt(object, "metadata"), "name");
}

function inMs(seconds: number | undefined): number | undefined {
  return seconds === undefined ? undefined : seconds * 1000;
}

/** True if the body of a DELETE requests immediate deletion (meta/v1 DeleteOptions { 1 gracePeriodSeconds }). */
export function isImmediateDelete(body: Buffer): boolean {
  const options = enveloped(body);
  if (options !== undefined) return numberIn(options, 1) === 0;
  const parsed = parseJson(body.toString());
  return isRecord(parsed) && parsed["gracePeriodSeconds"] === 0;
}
