/**
 * Sends fifty health requests a second from a process of its own, each on a new connection as a kubelet does, so that a
 * busy test process does not delay them. Also measures how long the probed process and this one waited for a CPU during
 * each request. Other load on the machine causes this wait, not the proxy.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { get } from "node:http";
import { constants, setPriority } from "node:os";
import { fileURLToPath } from "node:url";
import { waitedBy } from "./cpu.ts";
import { within } from "./within.ts";

const file = fileURLToPath(import.meta.url);
const everyMs = 20;

type Probe = { readonly tookMs: number; readonly waitedMs: number; readonly isWell: boolean };

export type HealthTimes = {
  readonly asked: number;
  readonly failed: number;
  /** Time in ms from request to response, sorted. */
  readonly took: readonly number[];
  /** The same times without the time spent waiting for a CPU, sorted. */
  readonly own: readonly number[];
};

export class HealthProber {
  readonly #child: ChildProcess;

  /** `pid` is the process that serves the endpoint. */
  constructor(url: string, pid: number) {
    this.#child = fork(file, [url, String(pid)], { execArgv: [] });
    // The child process must not keep a failed test from exiting.
    this.#child.unref();
    this.#child.channel?.unref();
  }

  /** Stops sending requests, and resolves after the last response. */
  async times(): Promise<HealthTimes> {
    this.#child.send("enough");
    const [probes] = (await within(20_000, "the prober", once(this.#child, "message"))) as [Probe[]];
    const sorted = (of: (probe: Probe) => number): number[] => probes.map(of).toSorted((a, b) => a - b);
    return {
      asked: probes.length,
      failed: probes.filter(({ isWell }) => !isWell).length,
      took: sorted(({ tookMs }) => tookMs),
      own: sorted(({ tookMs, waitedMs }) => tookMs - waitedMs),
    };
  }
}

function ask(url: string, pid: string): Promise<Probe> {
  const began = performance.now();
  const before = [waitedBy(pid), waitedBy("self")] as const;
  return new Promise((resolve) => {
    const done = (isWell: boolean): void => {
      const tookMs = performance.now() - began;
      // Both processes may have waited at the same time, so only the longer wait is subtracted.
      const waitedMs = Math.min(tookMs, Math.max(waitedBy(pid) - before[0], waitedBy("self") - before[1]));
      resolve({ tookMs, waitedMs, isWell });
    };
    const request = get(url, { agent: false, timeout: 10_000 }, (answer) => {
      answer.resume().once("close", () => done(answer.complete && answer.statusCode === 200));
    });
    request.once("timeout", () => request.destroy(new Error("no answer")));
    request.on("error", () => done(false));
  });
}

async function tell(probes: readonly Promise<Probe>[]): Promise<void> {
  // The message is larger than what the channel accepts at once, so the process disconnects only after it was sent.
  process.send?.(await Promise.all(probes), () => process.disconnect());
}

function askOnAndOn(url: string, pid: string): void {
  const probes: Promise<Probe>[] = [];
  const timer = setInterval(() => probes.push(ask(url, pid)), everyMs);
  process.once("disconnect", () => process.exit());
  process.once("message", () => {
    clearInterval(timer);
    void tell(probes);
  });
}

if (process.argv[1] === file) {
  try {
    setPriority(constants.priority.PRIORITY_HIGH);
  } catch {
    // Only root may raise the priority. Without it the wait of this process is still measured.
  }
  askOnAndOn(process.argv[2] ?? "", process.argv[3] ?? "");
}
