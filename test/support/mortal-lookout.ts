/**
 * The probe thread's thread as one that dies: the first one, which was given no port, fills its heap when it is asked for
 * metrics. In `barren` mode none comes after it.
 */
import { workerData } from "node:worker_threads";
import { adminLimits } from "../../src/admin/http/limits.ts";
import type { ProbeThreadOrder } from "../../src/admin/server/probe-thread.ts";

const order: ProbeThreadOrder = workerData;
const isFirst = order.port === 0;
if (!isFirst && order.contentType === "barren") throw new Error("barren");
await import("../../src/admin/server/probe-thread-main.ts");
if (isFirst)
  setTimeout(() => {
    const hoard: number[][] = [];
    // Eight bytes each: twice what it may have.
    while (hoard.length < 2 * adminLimits.probeThreadHeapMiB)
      hoard.push(Array.from({ length: 1 << 17 }, Math.random));
    throw new Error(`${hoard.length} MiB of heap were had`);
  }, 1000);
