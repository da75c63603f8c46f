/** Creates callers (clients in the statistics) for tests. */
import { Caller } from "../../src/ops/ledger/caller.ts";
import { noSubject, type Subject } from "../../src/ops/ledger/subject.ts";

export function callerAt(address: string, subject: Partial<Subject> = {}, agent = "manager"): Caller {
  return new Caller({ subject: { ...noSubject, source: "jwt", ...subject }, agent, address }, 0);
}
