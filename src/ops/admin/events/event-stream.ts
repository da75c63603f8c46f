/**
 * `GET /api/v1/events`: sends journal entries as server-sent events (WHATWG HTML §9.2). A client that reconnects with
 * Last-Event-ID gets the entries that it missed. A client that reads too slowly is disconnected.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock } from "../../../base/clock.ts";
import { adminLimits } from "../http/limits.ts";
import type { EventRing, NumberedEntry } from "./event-ring.ts";

/**
 * "yes" if the client may still read its event stream; "unknown" if the cluster does not answer authorization reviews.
 */
export type Permission = "yes" | "no" | "unknown";
export type CheckPermission = () => Promise<Permission>;

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
   * Sends events until either side closes the connection or a heartbeat finds that the client has lost its permission.
   * Returns false if too many streams are open. `?kind=` selects entries by the beginning of their kind.
   */
  serve(request: IncomingMessage, response: ServerResponse, checkPermission: CheckPermission): boolean {
    if (this.#open.size >= adminLimits.eventStreams) return false;
    const prefix = new URL(request.url ?? "", "http://here").searchParams.get("kind") ?? "";
    const send = (numbered: NumberedEntry): void => {
      const { kind } = numbered.entry;
      if (!kind.startsWith(prefix) || response.destroyed) return;
      response.write(
        `id: ${this.#ring.idOf(numbered)}\nevent: ${kind}\ndata: ${this.#ring.textOf(numbered)}\n\n`,
      );
      if (response.writableLength > adminLimits.eventBacklogBytes) response.destroy();
    };
    response.writeHead(200, {
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
      "content-security-policy": "default-src 'none'",
    });
    // The error is ignored, because a "close" event follows, and the listener of "close" cleans up.
    response.on("error", () => {});
    this.#resume(request.headers["last-event-id"], response, send);
    const unlisten = this.#ring.listen(send);
    const quieten = this.#startHeartbeat(response, checkPermission);
    const end = (): void => {
      unlisten();
      quieten();
      this.#open.delete(end);
    };
    this.#open.add(end);
    response.on("close", end);
    return true;
  }

  #resume(
    id: string | string[] | undefined,
    response: ServerResponse,
    send: (numbered: NumberedEntry) => void,
  ): void {
    response.write(": the journal, from now on\n\n");
    if (typeof id !== "string" || id === "") return;
    const { entries, isWhole } = this.#ring.after(id);
    if (!isWhole) response.write('event: gap\ndata: {"kind":"gap"}\n\n');
    for (const one of entries) send(one);
  }

  /**
   * At intervals, checks the client's permission and writes a comment, because only a failed write shows that a client
   * is gone. Returns a function that stops this heartbeat.
   */
  #startHeartbeat(response: ServerResponse, checkPermission: CheckPermission): () => void {
    let allowedAt = this.#clock.now();
    const again = (): (() => void) => this.#clock.after(adminLimits.eventBeatMs, () => void beat());
    const beat = async (): Promise<void> => {
      const permission = await checkPermission().catch((): Permission => "no");
      if (response.destroyed) return;
      const now = this.#clock.now();
      if (permission === "yes") allowedAt = now;
      // While the cluster does not answer reviews, the last permission stays valid for `accessAllowedMs`, as a cached
      // permission does.
      if (permission === "no" || now - allowedAt > adminLimits.accessAllowedMs) return void response.end();
      response.write(": still here\n\n");
      stop = again();
    };
    let stop = again();
    return () => stop();
  }
}
