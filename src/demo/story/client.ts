/** A small API client over our own HTTP/2: what the demo's story is told with. One session, JSON bodies. */
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

/** What a watch tells: one call per event, and one when it is over, cleanly or not. */
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

  /** `token`: embedded apiservers ask nobody who they are, so any will do there. */
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

  /** The whole answer; a Failure when there was none, or none within `withinMs`: then the stream is cancelled. */
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

  /** Follows a watch until it ends. What is not answered with 200 has no events and did not end cleanly. */
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
      // Trailers carry no status: what counts was said in the head.
      if (first?.name === ":status") listener.head(Number(first.value));
      if (end) listener.end();
    },
    data(bytes, start, end, endStream) {
      // The bytes are only lent for this call.
      listener.data(Buffer.from(bytes.subarray(start, end)));
      grant(end - start);
      if (endStream) listener.end();
    },
    reset: (code) => listener.reset(code),
    sent() {},
  };
}
