/** Loads the scene over code whose connections for clients' requests are simulated. */
import { loadMutated, type Mutation } from "../mutated.ts";
import type { Operators } from "./scene.ts";

/** The one place where the proxy dials such a connection. The global function is that of whole-proxy.ts. */
const dial: Mutation = {
  file: "proxy/cluster/cluster.ts",
  find: "connectConnection(this.backends",
  replace: "globalThis.dialSimulated(this.backends",
};

/** `mutations`: deliberate faults. A process can play one scene at a time, because time is the process's own. */
export async function loadOperators(mutations: readonly Mutation[] = []): Promise<typeof Operators> {
  const all = [dial, ...mutations];
  return (await loadMutated<{ readonly Operators: typeof Operators }>("operators/scene.ts", all)).Operators;
}
