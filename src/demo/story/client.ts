/** A small API client on our own HTTP/2 implementation, used by the demo. One session, JSON bodies. */
import { wallClock } from "../../base/clock.ts";
import { Failure } from "../../base/failure.ts";
import type { Journal } from "../../events/journal.ts";
import { Field } from "../../h2/core/field.ts";
import { FlushScheduler } from "../../h2/core/flush-scheduler.ts";
import { errorCode } from "../../h2/core/protocol-error.ts";
import type { StreamListener } from "../../h2/core/stream-writer.ts";
import { Session } from "../../h2/session/session.ts";
import type { Stream } from "../../h2/session/stream.ts";
import { type BackendAddress, connectConnection } from "../../proxy/net/connect.ts";
import type { Wire, WireOwner } from "../../proxy/net/wire.ts";
import { type Json, parseJson } from "../objects/json.ts";

export type Reply = { readonly status: number; readonly body: Json };

/** Callbacks of a watch: one for each event, and one for its end, clean or not. */
export type Watcher = { event(line: Json): void; ended(isClean: boolean): void };

type Question = {
  readonly method: string;
  readonly path: string;
  readonly type?: string;
  readonly body?: Json;
};

const keepalive = { idleMs: 5_000, intervalMs: 1_000, count: 3 };

export class DemoClient implements WireOwner {
  readonly #address: BackendAddress;
  readonly #token: string;
  readonly #session: Session;
  readonly #wire: Wire;

  /** `token`: embedded apiservers accept any token. */
  constructor(address: BackendAddress, journal: Journal, token = "demo") {
    this.#address = address;
    this.#token = token;
    this.#wire = connectConnection(address, this, { journal, keepalive });
    this.#session = new Session({
      role: "client",
      clock: wallClock,
      turn: new FlushScheduler(wallClock),
      owner: {
        opened: (stream) => stream.owner,
        write: (buffers, written) => this.#wire.write(buffers, written),
        changed() {},
        ponged() {},
        ended: () => this.#wire.end(),
      },
    });
  }

  get isOpen(): boolean {
    return this.#session.isOpen;
  }

  /**
   * Resolves with the whole response. A Failure if there was none, or none within `withinMs`: the stream is then
   * cancelled.
   */
  ask(question: Question, withinMs = Number.POSITIVE_INFINITY): Promise<Reply | Failure> {
    return new Promise((resolve) => {
      const chunks: Buffer[] = [];
      let status = 0;
      let forget: (() => void) | undefined;
      const settle = (outcome: Reply | Failure): void => {
        forget?.();
        resolve(outcome);
      };
      const done = (): void => settle({ status, body: parseJson(Buffer.concat(chunks).toString()) ?? null });
      const stream = this.#open(question, {
        head(code) {
          status = code;
        },
        data: (bytes) => void chunks.push(bytes),
        end: done,
        reset: (code) => settle(new Failure("backend-lost", "proxy", `Stream reset with code ${code}`)),
      });
      if (!Number.isFinite(withinMs)) return;
      forget = wallClock.after(withinMs, () => {
        resolve(new Failure("backend-lost", "proxy", `No answer within ${withinMs} ms`));
        stream.reset(errorCode.CANCEL);
      });
    });
  }

  /** Follows a watch until it ends. A response other than 200 has no events and no clean end. */
  watch(path: string, watcher: Watcher): void {
    let partial = "";
    let isWatch = false;
    this.#open(
      { method: "GET", path },
      {
        head(status) {
          isWatch = status === 200;
        },
        data(bytes) {
          if (!isWatch) return;
          const lines = (partial + bytes.toString()).split("\n");
          partial = lines.pop() ?? "";
          for (const line of lines) watcher.event(parseJson(line) ?? null);
        },
        end: () => watcher.ended(isWatch),
        reset: () => watcher.ended(false),
      },
    );
  }

  close(): void {
    this.#session.goAway();
    this.#session.flush();
    this.#wire.end();
    this.#session.lose();
  }

  receive(chunk: Buffer): void {
    this.#session.receive(chunk);
  }

  drained(): void {
    this.#session.drained();
  }

  closed(): void {
    this.#session.lose();
  }

  #open({ method, path, type, body }: Question, listener: Listener): Stream {
    const { host, port } = this.#address;
    const content = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
    const fields = [
      new Field(":method", method),
      new Field(":scheme", "https"),
      new Field(":authority", `${host}:${port}`),
      new Field(":path", path),
      new Field("authorization", `Bearer ${this.#token}`),
      new Field("user-agent", "watchkeeper-demo"),
      new Field("accept", "application/json"),
    ];
    if (content !== undefined) fields.push(new Field("content-type", type ?? "application/json"));
    const stream = this.#session.open(
      fields,
      content === undefined,
      ownerOf(listener, (n) => stream.grant(n)),
    );
    if (content !== undefined) stream.sendData(content, 0, content.length, true);
    return stream;
  }
}

type Listener = {
  head(status: number): void;
  data(bytes: Buffer): void;
  end(): void;
  reset(code: number): void;
};

function ownerOf(listener: Listener, grant: (count: number) => void): StreamListener {
  return {
    headers(fields, end) {
      const [first] = fields;
      // Trailers have no status; the head has the one that counts.
      if (first?.name === ":status") listener.head(Number(first.value));
      if (end) listener.end();
    },
    data(bytes, start, end, endStream) {
      // The bytes are valid only during this call.
      listener.data(Buffer.from(bytes.subarray(start, end)));
      grant(end - start);
      if (endStream) listener.end();
    },
    reset: (code) => listener.reset(code),
    sent() {},
  };
}
