/**
 * A watch as client-go runs it: it resumes from the last version that it received, and records how each stream ended.
 */
import type { Client } from "./client.ts";

export type Event = {
  readonly type: string;
  readonly name: string;
  readonly version: number;
  readonly at: number;
};

/**
 * `clean`: END_STREAM between two events. `partial`: END_STREAM within an event. `reset`: the stream was reset.
 * `refused`: the response had an error status. `error`: an ERROR event came.
 */
export type WatchEnd = {
  readonly at: number;
  readonly how: "clean" | "partial" | "reset" | "refused" | "error";
  readonly detail: string;
};

type Line = {
  readonly type: string;
  readonly object: {
    readonly code?: number;
    readonly metadata?: { readonly name?: string; readonly resourceVersion?: string };
  };
};

export class Watching {
  readonly events: Event[] = [];
  readonly ends: WatchEnd[] = [];
  /** Ranges of versions between a 410 and the list after it. No watch delivers the events within them. */
  readonly gaps: { readonly after: number; readonly until: number }[] = [];
  readonly #client: Client;
  readonly #path: string;
  readonly #see: (object: unknown) => void;
  #version: number;
  #isStopped = false;
  #close: () => void = () => {};
  readonly #done: Promise<void>;

  /** `path` is the path of a collection, `version` is the one to start from. `see` gets the object of each event. */
  constructor(client: Client, path: string, version: number, see: (object: unknown) => void = () => {}) {
    this.#client = client;
    this.#path = path;
    this.#version = version;
    this.#see = see;
    this.#done = this.#run();
  }

  async #run(): Promise<void> {
    for (;;) {
      const openedAt = Date.now();
      const before = this.events.length;
      const end = await this.#stream();
      if (this.#isStopped) return;
      this.ends.push(end);
      if (end.how === "error" && end.detail === "410") await this.#listAnew();
      // client-go waits only after a stream that ended within a second and delivered no event.
      const wasIdle = Date.now() - openedAt < 1_000 && this.events.length === before;
      if (wasIdle) await new Promise((resolve) => setTimeout(resolve, 800));
    }
  }

  #stream(): Promise<WatchEnd> {
    const query = `watch=true&allowWatchBookmarks=true&timeoutSeconds=3600&resourceVersion=${this.#version}`;
    const stream = this.#client.open({ path: `${this.#path}?${query}` });
    this.#close = () => stream.close(8);
    const { promise, resolve } = Promise.withResolvers<WatchEnd>();
    let rest = "";
    let status = 0;
    let failed = "";
    let hasEnded = false;
    stream.setEncoding("utf8");
    stream.on("response", (head) => (status = Number(head[":status"])));
    stream.on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      if (status === 200) for (const line of lines) failed ||= this.#take(line);
    });
    stream.on("end", () => (hasEnded = true));
    stream.on("close", () => {
      const how = (): WatchEnd["how"] => {
        if (!hasEnded || stream.rstCode !== 0) return "reset";
        if (status !== 200) return "refused";
        if (failed !== "") return "error";
        return rest === "" ? "clean" : "partial";
      };
      const kind = how();
      const detail = kind === "reset" ? `${stream.rstCode}` : kind === "refused" ? `${status}` : failed;
      resolve({ at: Date.now(), how: kind, detail });
    });
    return promise;
  }

  async #listAnew(): Promise<void> {
    const { status, body } = await this.#client.ask({ path: `${this.#path}?limit=1` });
    if (status !== 200) return; // tried again after the next 410
    const { metadata } = JSON.parse(body.toString()) as { metadata: { resourceVersion: string } };
    const until = Number(metadata.resourceVersion);
    this.gaps.push({ after: this.#version, until });
    this.#version = until;
  }

  /** Processes a line. Returns the status code of an ERROR event, or "". */
  #take(line: string): string {
    if (line === "") return "";
    const { type, object } = JSON.parse(line) as Line;
    if (type === "ERROR") return String(object.code);
    const version = Number(object.metadata?.resourceVersion);
    if (type !== "BOOKMARK") {
      this.events.push({ type, name: object.metadata?.name ?? "", version, at: Date.now() });
      this.#see(object);
    }
    this.#version = version;
    return "";
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#close();
    await this.#done;
  }
}

export type Difference = {
  readonly missing: number;
  readonly doubled: number;
  readonly reordered: number;
  /** Largest delay of an event behind the same event of the other watch. */
  readonly worstMs: number;
};

/**
 * Compares a watch with one of the same collection that had no fault. In that other watch, each version occurs once.
 */
export function compare(watch: readonly Event[], direct: readonly Event[]): Difference {
  const seen = new Map<number, number>();
  let doubled = 0;
  let reordered = 0;
  let last = 0;
  for (const { version, at } of watch) {
    if (seen.has(version)) doubled++;
    else if (version < last) reordered++;
    else seen.set(version, at);
    last = Math.max(last, version);
  }
  const missing = direct.filter(({ version }) => !seen.has(version)).length;
  const delays = direct.map(({ version, at }) => (seen.get(version) ?? at) - at);
  return { missing, doubled, reordered, worstMs: Math.max(0, ...delays) };
}
