/**
 * Starts the roles of the herd test (herd-child.ts), each in a process of its own, so that they do not delay each
 * other.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { within } from "./within.ts";

export type HerdPart = {
  readonly role: "backend" | "herd" | "flood" | "proven";
  /** The port of the proxy, the CA of its certificate, and the loopback address from which the client connects. */
  readonly port: number;
  readonly ca: string;
  readonly address: string;
  readonly bearers: number;
  readonly watchesEach: number;
  readonly perSecond: number;
  /** The path that the herd watches; default: pods, without a resourceVersion. */
  readonly path?: string;
  /**
   * Number of watches whose User-Agent is kube-controller-manager. They are spread evenly over all watches of the herd.
   */
  readonly firstWatches?: number;
  /** Role "proven" only: the processes on the path of its requests. */
  readonly pids?: readonly number[];
  /** Role "backend" only. */
  readonly certificate: string;
  readonly key: string;
};

/** Counts of requests and of responses by status, and response times in ms. */
export type PartState = {
  readonly asked: number;
  readonly counts: Readonly<Record<string, number>>;
  readonly halfMs: number;
  readonly slowestMs: number;
  /**
   * Role "proven" only: its longest response time, without the time that the processes on the path waited for a CPU.
   */
  readonly slowestOwnMs: number;
  /** Role "backend" only: number of requests from kube-controller-manager. */
  readonly askedFirst: number;
  /** Role "herd" only: number of streams that have ended. */
  readonly closed: number;
  /** Role "backend" only: number of GOAWAYs that it has sent. */
  readonly goAways: number;
  /** True if each watch of the herd has a response. */
  readonly isDone: boolean;
};

const file = fileURLToPath(new URL("./herd-child.ts", import.meta.url));

export class PartProcess {
  /** Role "backend" only. */
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
