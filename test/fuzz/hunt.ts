/** Fuzzes one target for the given time in a worker thread, and detects inputs that hang. */
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { readCorpus } from "./corpus.ts";
import type { FuzzResult } from "./fuzzer.ts";
import type { TargetName } from "./targets.ts";
import type { Done, Job } from "./worker.ts";

/** Timeout of one input in ms. An input has at most 4 KiB and normally takes a few milliseconds. */
const hangMs = 20_000;

export async function hunt(name: TargetName, seconds: number, seed: number): Promise<FuzzResult> {
  const shared = new SharedArrayBuffer(8 + 8192);
  const words = new Int32Array(shared, 0, 2);
  const job: Job = { name, seconds, seed, corpus: readCorpus(name), shared };
  const worker = new Worker(new URL("./worker.ts", import.meta.url), { workerData: job });
  const done = once(worker, "message");
  const stuck = Promise.withResolvers<never>();
  let seen = -1;
  const look = setInterval(() => {
    const now = Atomics.load(words, 0);
    if (now === seen) {
      const input = Buffer.from(new Uint8Array(shared, 8, words[1] ?? 0));
      stuck.reject(new Error(`${name}: no end after ${hangMs / 1000} s of ${input.toString("base64")}`));
    }
    seen = now;
  }, hangMs);
  try {
    const [message] = (await Promise.race([done, stuck.promise])) as [Done];
    const { result } = message;
    // A Buffer that comes from a thread has become a Uint8Array.
    const corpus = result.corpus.map((input) => Buffer.from(input));
    const crashes = result.crashes.map((crash) => ({ ...crash, input: Buffer.from(crash.input) }));
    return { ...result, corpus, crashes };
  } finally {
    clearInterval(look);
    await worker.terminate();
  }
}

/** Returns the result as one line. */
export function lineOf(name: TargetName, seconds: number, result: FuzzResult): string {
  const share = ({ all, ran }: { all: number; ran: number }): string =>
    `${ran} of ${all} blocks (${((100 * ran) / Math.max(1, all)).toFixed(1)} %)`;
  const { runs, crashes, corpus, slowestMs, own, codec } = result;
  return `${name}: ${crashes.length} crashes in ${runs} inputs, ${seconds} s; ran ${share(own)} of its sources, ${share(codec)} of src/h2; ${corpus.length} kept, slowest ${slowestMs.toFixed(0)} ms`;
}
