/** Fuzzes in a worker thread, so that the main thread can detect an input that never ends. */
import { parentPort, workerData } from "node:worker_threads";
import { type FuzzOptions, type FuzzResult, fuzz } from "./fuzzer.ts";

export type Job = Pick<FuzzOptions, "name" | "seconds" | "seed"> & {
  readonly corpus: readonly Uint8Array[];
  /**
   * Shared memory: the first word counts inputs, the second is the length of the present input, and the input itself
   * follows.
   */
  readonly shared: SharedArrayBuffer;
};
export type Done = { readonly result: FuzzResult };

const job = workerData as Job;
const words = new Int32Array(job.shared, 0, 2);
const room = new Uint8Array(job.shared, 8);

const result = await fuzz({
  ...job,
  corpus: job.corpus.map((input) => Buffer.from(input)),
  about(input) {
    room.set(input.subarray(0, room.length));
    words[1] = Math.min(input.length, room.length);
    Atomics.add(words, 0, 1);
  },
});
parentPort?.postMessage({ result } satisfies Done, []);
