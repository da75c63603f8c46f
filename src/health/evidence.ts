/** One thing learnt about a backend, by asking it (probe) or by using it (traffic). The list is closed. */
export type Evidence =
  /** A fresh socket to it: TCP, TLS and the first SETTINGS. */
  | { readonly kind: "dial"; readonly ok: boolean; readonly reason: string }
  /** A live lane left a PING unanswered for so long. */
  | { readonly kind: "silence"; readonly ms: number }
  /** No lane is silent any more, and one answers. */
  | { readonly kind: "answer" };
