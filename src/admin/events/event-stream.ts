/**
 * `GET /api/v1/events`: the journal as it is written, as server-sent events (WHATWG HTML §9.2). A client that reconnects
 * with Last-Event-ID first gets what it missed. A client that reads too slowly is disconnected, and reconnects by itself.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock } from "../../base/clock.ts";
import { adminLimits } from "../http/limits.ts";
import type { EventRing, Told } from "./event-ring.ts";

/** Whether a stream's client may still read it. "unknown": the cluster cannot be asked. */
export type Verdict = "yes" | "no" | "unknown";
export type Judge = () => Promise<Verdict>;

export class EventStreams {
  readonly #ring: EventRing;
  readonly #clock: Clock;
  readonly #open = new Set<() => void>();

  constructor(ring: EventRing, clock: Clock) {
    this.#ring = ring;
    this.#clock = clock;
  }

  get size(): number {
    return this.#open.size;
  }

  /**
   * Serves until either side closes, or the client loses its permission, which `judge` checks at each heartbeat. Returns
   * false if there are too many streams. With `?kind=`, sends only entries whose kind begins with that text.
   */
  serve(request: IncomingMessage, response: ServerResponse, judge: Judge): boolean {
    if (this.#open.size >= adminLimits.eventStreams) return false;
    const prefix = new URL(request.url ?? "", "http://here").searchParams.get("kind") ?? "";
    const send = (told: Told): void => {
      const { kind } = told.entry;
      if (!kind.startsWith(prefix) || response.destroyed) return;
      response.write(`id: ${this.#ring.idOf(told)}\nevent: ${kind}\ndata: ${this.#ring.textOf(told)}\n\n`);
      if (response.writableLength > adminLimits.eventBacklogBytes) response.destroy();
    };
    response.writeHead(200, {
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
      "content-security-policy": "default-src 'none'",
    });
    // The client has gone: "close" follows and cleans up.
    response.on("error", () => {});
    this.#resume(request.headers["last-event-id"], response, send);
    const unlisten = this.#ring.listen(send);
    const quieten = this.#beat(response, judge);
    const end = (): void => {
      unlisten();
      quieten();
      this.#open.delete(end);
    };
    this.#open.add(end);
    response.on("close", end);
    return true;
  }

  /** Without an id the stream begins now. */
  #resume(id: string | string[] | undefined, response: ServerResponse, send: (told: Told) => void): void {
    response.write(": the journal, from now on\n\n");
    if (typeof id !== "string" || id === "") return;
    const { told, isWhole } = this.#ring.after(id);
    if (!isWhole) response.write('event: gap\ndata: {"kind":"gap"}\n\n');
    for (const one of told) send(one);
  }

  /** Sends a comment at intervals: writing is the only way to detect that the client has gone. */
  #beat(response: ServerResponse, judge: Judge): () => void {
    let allowedAt = this.#clock.now();
    const again = (): (() => void) => this.#clock.after(adminLimits.eventBeatMs, () => void beat());
    const beat = async (): Promise<void> => {
      const verdict = await judge().catch((): Verdict => "no");
      if (response.destroyed) return;
      const now = this.#clock.now();
      if (verdict === "yes") allowedAt = now;
      // "unknown": the last permission counts for as long as it would for a request.
      if (verdict === "no" || now - allowedAt > adminLimits.accessAllowedMs) return void response.end();
      response.write(": still here\n\n");
      stop = again();
    };
    let stop = again();
    return () => stop();
  }
}
