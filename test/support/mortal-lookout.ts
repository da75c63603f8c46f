/**
 * A probe thread (the worker thread that answers health probes) that crashes. The first one, which was given port 0,
 * fills its heap one second after its start. In `barren` mode each later one fails to start.
 */
import { workerData } from "node:worker_threads";
import { adminLimits } from "../../src/ops/admin/http/limits.ts";
import type { ProbeThreadOrder } from "../../src/ops/admin/server/probe-thread.ts";

const order: ProbeThreadOrder = workerData;
const isFirst = order.port === 0;
if (!isFirst && order.contentType === "barren") throw new Error("barren");
await import("../../src/ops/admin/server/probe-thread-main.ts");
if (isFirst)
  setTimeout(() => {
    const hoard: number[][] = [];
    // Each iteration takes 1 MiB, so this is twice the thread's heap limit.
    while (hoard.length < 2 * adminLimits.probeThreadHeapMiB)
      hoard.push(Array.from({ length: 1 << 17 }, Math.random));
    throw new Error(`${hoard.length} MiB of heap were had`);
  }, 1000);
