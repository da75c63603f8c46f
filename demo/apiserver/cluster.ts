import type { Clock } from "../../src/base/clock.ts";
import { namespaces } from "../objects/resources.ts";
import { Store } from "../objects/store.ts";
import { Rest } from "./rest.ts";

const first = ["default", "kube-node-lease", "kube-public", "kube-system"];

/** Returns a store with the four namespaces that every cluster has. */
export function newCluster(clock: Clock, store: Store = new Store()): Store {
  const rest = new Rest(store, clock);
  for (const name of first) {
    rest.answer({
      method: "POST",
      target: {
        resource: namespaces,
        namespace: undefined,
        name: undefined,
        subresource: undefined,
        isWatchPath: false,
      },
      query: new URLSearchParams(),
      contentType: "",
      body: Buffer.from(JSON.stringify({ metadata: { name } })),
    });
  }
  return store;
}
