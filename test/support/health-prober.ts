/**
 * Asks a health endpoint fifty times a second, each time on a socket of its own as a kubelet does, from a process of its own,
 * so that what its starter does costs it nothing. With each answer it tells how long the asked process waited for a
 * processor meanwhile, or this one: that is the machine's doing, where a crowd shares it with what it is to serve.
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
  /** From question to answer, sorted. */
  readonly took: readonly number[];
  /** The same without what was waited for a processor. */
  readonly own: readonly number[];
};

export class HealthProber {
  readonly #child: ChildProcess;

  /** `pid` is whose endpoint it is. */
  constructor(url: string, pid: number) {
    this.#child = fork(file, [url, String(pid)], { execArgv: [] });
    // A test that fails before it has the times is not kept from its end.
    this.#child.unref();
    this.#child.channel?.unref();
  }

  /** Stops asking; resolves when the last question is answered. */
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
      // Both may have waited at the same time: the longer of the two is the least that it cost.
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
  // The channel has more to carry than it takes at once.
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
    // Only root may: what it waits itself is told all the same.
  }
  askOnAndOn(process.argv[2] ?? "", process.argv[3] ?? "");
}
