/** Starts the parts of the herd (herd-child.ts), each in a process of its own, so that none takes another's time. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { within } from "./within.ts";

export type HerdPart = {
  readonly role: "backend" | "herd" | "flood" | "proven";
  /** The proxy's, and the loopback address that the client connects from. */
  readonly port: number;
  readonly ca: string;
  readonly address: string;
  readonly bearers: number;
  readonly watchesEach: number;
  readonly perSecond: number;
  /** What the herd watches; default: pods, without a version. */
  readonly path?: string;
  /** Number of the herd's watches, spread over all, whose program is a controller manager. */
  readonly firstWatches?: number;
  /** A proven client's: the processes that its requests pass. */
  readonly pids?: readonly number[];
  /** A backend's own. */
  readonly certificate: string;
  readonly key: string;
};

/** What was asked and answered, by status, and how late. */
export type PartState = {
  readonly asked: number;
  readonly counts: Readonly<Record<string, number>>;
  readonly halfMs: number;
  readonly slowestMs: number;
  /** A proven client's: its slowest, without what the processes on the way waited for a processor meanwhile. */
  readonly slowestOwnMs: number;
  /** A backend's: requests of a controller manager. */
  readonly askedFirst: number;
  /** The herd's: streams that are over. */
  readonly closed: number;
  /** A backend's: those that it has sent. */
  readonly goAways: number;
  /** True if each watch of the herd is answered. */
  readonly isDone: boolean;
};

const file = fileURLToPath(new URL("./herd-child.ts", import.meta.url));

export class PartProcess {
  /** A backend's. */
  readonly port: number;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, port: number) {
    this.#child = child;
    this.port = port;
  }

  static async start(part: Pick<HerdPart, "role"> & Partial<HerdPart>): Promise<PartProcess> {
    const child = fork(file, [JSON.stringify(part)]);
    const [port] = await within(20_000, `the start of the ${part.role}`, once(child, "message"));
    return new PartProcess(child, Number(port));
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  async state(): Promise<PartState> {
    const answer = once(this.#child, "message");
    this.#child.send("state");
    const [state] = await within(60_000, "a part's state", answer);
    return state as PartState;
  }

  stop(): void {
    this.#child.kill("SIGKILL");
  }
}

export function told({ asked, counts, halfMs, slowestMs }: PartState): string {
  return `${JSON.stringify(counts)} of ${asked}, half within ${halfMs} ms, all within ${slowestMs} ms`;
}
