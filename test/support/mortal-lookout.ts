/** The lookout's thread, which dies once: the first one, which was given no port, a second after it opened. */
import { workerData } from "node:worker_threads";
import type { LookoutOrder } from "../../src/admin/lookout.ts";

await import("../../src/admin/lookout-thread.ts");
const order: LookoutOrder = workerData;
if (order.port === 0)
  setTimeout(() => {
    throw new Error("mortal");
  }, 1000);
