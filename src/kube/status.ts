/** Error responses as the apiserver writes them: a meta/v1 `Status`. Clients act on its code and reason. */

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
