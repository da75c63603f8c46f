/**
 * Reads writes to a leader lock: a Lease, or the annotation that client-go's older locks keep on a ConfigMap or
 * Endpoints (client-go, tools/leaderelection/resourcelock). JSON and protobuf, whole objects and patches.
 */
import { isRecord, type JsonRecord, parseJson, recordAt, textAt } from "../base/json.ts";
import { entriesIn, enveloped, type Message, messageIn, numberIn, textIn } from "../base/protobuf.ts";

export const leaderAnnotation = "control-plane.alpha.kubernetes.io/leader";

export type LockRecord = {
  /** As in the object; "" in a patch. */
  readonly name: string;
  /** Undefined: a patch that does not change it. "" is a released lock. */
  readonly holder: string | undefined;
  readonly durationMs: number | undefined;
  /** True if it contains a renewal time. A write that only labels a lock does not renew it. */
  readonly isRenewal: boolean;
};

/** `isLease`: a Lease, not an annotated object. Returns undefined if it is no lock or unreadable. */
export function lockRecordIn(body: Buffer, isLease: boolean): LockRecord | undefined {
  if (!isLease && !body.includes(leaderAnnotation)) return undefined;
  const object = enveloped(body);
  if (object !== undefined) return isLease ? ofLease(object) : ofAnnotated(object);
  // YAML, CBOR, or no body: locks renewed in these formats are not tracked.
  const parsed = parseJson(body.toString());
  if (Array.isArray(parsed)) return ofJsonPatch(parsed);
  if (!isRecord(parsed)) return undefined;
  return isLease ? ofLeaseJson(parsed) : ofAnnotatedJson(parsed);
}

/** coordination/v1 generated.proto: Lease { 1 metadata  2 spec { 1 holderIdentity  2 leaseDurationSeconds  4 renewTime } } */
function ofLease(object: Message): LockRecord {
  const spec = messageIn(object, 2);
  return {
    name: textIn(messageIn(object, 1), 1),
    holder: textIn(spec, 1),
    durationMs: inMs(numberIn(spec, 2)),
    isRenewal: spec?.has(4) === true,
  };
}

/** The metadata's field 12: its annotations. */
function ofAnnotated(object: Message): LockRecord | undefined {
  const metadata = messageIn(object, 1);
  const annotation = parseJson(entriesIn(metadata, 12, leaderAnnotation).at(-1) ?? "");
  return isRecord(annotation) ? ofSpec(textIn(metadata, 1), annotation) : undefined;
}

function ofLeaseJson(object: JsonRecord): LockRecord | undefined {
  const spec = recordAt(object, "spec");
  return spec && ofSpec(nameIn(object), spec);
}

function ofAnnotatedJson(object: JsonRecord): LockRecord | undefined {
  const annotations = recordAt(recordAt(object, "metadata"), "annotations");
  const annotation = parseJson(textAt(annotations, leaderAnnotation));
  return isRecord(annotation) ? ofSpec(nameIn(object), annotation) : undefined;
}

/** RFC 6902; operations on other paths are ignored. */
function ofJsonPatch(operations: readonly unknown[]): LockRecord | undefined {
  const spec: Record<string, unknown> = {};
  for (const operation of operations) {
    if (!isRecord(operation) || typeof operation["path"] !== "string") continue;
    const field = /^\/spec\/(\w+)$/.exec(operation["path"])?.[1];
    if (field !== undefined) spec[field] = operation["value"];
  }
  return Object.keys(spec).length === 0 ? undefined : ofSpec("", spec);
}

/** The annotation uses the field names of a Lease. Null removes a field, so the lock has no holder. */
function ofSpec(name: string, spec: JsonRecord): LockRecord {
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

/** True if a DELETE's body asks for immediate deletion (meta/v1 DeleteOptions { 1 gracePeriodSeconds }). */
export function isImmediateDelete(body: Buffer): boolean {
  const options = enveloped(body);
  if (options !== undefined) return numberIn(options, 1) === 0;
  const parsed = parseJson(body.toString());
  return isRecord(parsed) && parsed["gracePeriodSeconds"] === 0;
}
