/** Journals an internal error that ended one stream: the innermost level of containment (D10). */
import { failureFrom } from "../base/failure.ts";
import type { Journal } from "./journal.ts";

export function faulted(journal: Journal, error: unknown): void {
  journal.write({ kind: "internal.error", scope: "stream", message: failureFrom(error, "proxy").message });
}
