/** Reads and writes the W3C trace context of a request, its field `traceparent` (w3.org/TR/trace-context). */
import { Field, role } from "../../h2/core/field.ts";

export type TraceParent = {
  readonly traceId: string;
  readonly spanId: string;
  readonly isSampled: boolean;
};

const name = "traceparent";
/** Version ff and ids of zeros are invalid. Version 00 has 55 characters; a later version may have more fields. */
const form =
  /^(?!ff|00.{54})[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?$/;
const sampledFlag = 1;

/** Returns the client's span; undefined: the request has no trace context, or a malformed one, or more than one. */
export function traceParentIn(fields: readonly Field[]): TraceParent | undefined {
  let value: string | undefined;
  for (const field of fields) {
    if (field.role !== role.traceParent) continue;
    if (value !== undefined) return undefined;
    value = field.value;
  }
  return value === undefined ? undefined : parsed(value);
}

function parsed(value: string): TraceParent | undefined {
  const [, traceId, spanId, flags] = form.exec(value) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & sampledFlag) !== 0 };
}

/**
 * Returns the header fields with a `traceparent` that names this span, so that the receiver's spans become its
 * children.
 */
export function withTraceParent(
  fields: readonly Field[],
  { traceId, spanId }: Pick<TraceParent, "traceId" | "spanId">,
): Field[] {
  const own = new Field(name, `00-${traceId}-${spanId}-01`);
  return [...fields.filter((field) => field.role !== role.traceParent), own];
}
