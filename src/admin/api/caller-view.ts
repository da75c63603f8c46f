/** The client's fields, the same in every list of the JSON API. */
import type { Caller } from "../../ledger/caller.ts";

export type CallerView = {
  readonly client: string;
  readonly agent: string;
  /** Not verified by the proxy unless `subjectSource` is "vouched". */
  readonly subject: string;
  readonly subjectSource: string;
  readonly pod: string;
  readonly node: string;
};

export function callerView({ address, agent, subject }: Caller): CallerView {
  const { name, source, namespace, pod, node } = subject;
  return {
    client: address,
    agent,
    subject: name,
    subjectSource: source,
    pod: pod === "" ? "" : `${namespace}/${pod}`,
    node,
  };
}
