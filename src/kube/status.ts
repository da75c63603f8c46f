/** Error responses as the apiserver writes them: a meta/v1 `Status`. Clients act on its code and reason. */
import { isRecord, parseJson, recordAt, textAt } from "../base/json.ts";
import { fieldIn, type Span } from "./list-version.ts";

export type Refusal<Details = object> = {
  readonly message: string;
  /** The reason in the apiserver's words, such as "BadRequest". */
  readonly reason: string;
  readonly details?: Details | undefined;
  readonly code: number;
};

type Status<Details> = {
  readonly message: string;
  readonly reason: string;
  readonly details?: Details;
  readonly code: number;
  readonly kind: string;
  readonly apiVersion: string;
  readonly metadata: Readonly<Record<string, never>>;
  readonly status: string;
};

export function statusOf<Details>({ message, reason, details, code }: Refusal<Details>): Status<Details> {
  const status = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message, reason };
  return details === undefined ? { ...status, code } : { ...status, details, code };
}

export function statusJson(refusal: Refusal): string {
  return `${JSON.stringify(statusOf(refusal))}\n`;
}

/** Protobuf field numbers of a Status, and of the name in its details. */
const statusField = { reason: 4, details: 5, name: 1 } as const;

/**
 * Returns the reason of a Status in JSON or protobuf, and the name of the object to which it refers; "": none. Returns
 * undefined for any other body.
 */
export function reasonIn(body: Buffer): { readonly reason: string; readonly name: string } | undefined {
  if (body.toString("latin1", 0, 4) !== "k8s\0") {
    const status = parseJson(body.toString());
    if (!isRecord(status) || textAt(status, "kind") !== "Status") return undefined;
    return { reason: textAt(status, "reason"), name: textAt(recordAt(status, "details"), "name") };
  }
  const raw = fieldIn(body, 4, body.length, 2);
  const text = (span: Span | undefined): string => (span ? body.toString("utf8", span.start, span.end) : "");
  const details = raw && fieldIn(body, raw.start, raw.end, statusField.details);
  const reason = text(raw && fieldIn(body, raw.start, raw.end, statusField.reason));
  return { reason, name: text(details && fieldIn(body, details.start, details.end, statusField.name)) };
}
