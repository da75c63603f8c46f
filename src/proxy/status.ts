/** The body of an answer that refuses: a `Status` of meta/v1, as the apiserver itself writes it. */

export type Refusal = {
  readonly message: string;
  /** The apiserver's own word for it: "BadRequest". */
  readonly reason: string;
  readonly details?: { readonly retryAfterSeconds: number } | undefined;
  readonly code: number;
};

export function statusJson({ message, reason, details, code }: Refusal): string {
  const status = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure" };
  return `${JSON.stringify({ ...status, message, reason, details, code })}\n`;
}
