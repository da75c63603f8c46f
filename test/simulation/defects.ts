/**
 * Deliberate faults of the data path. Each one wraps one method at run time and can be removed again. They prove that
 * the simulation detects faults: a run with any of them must fail.
 */
import { Failure } from "../../src/base/failure.ts";
import type { Field } from "../../src/h2/core/field.ts";
import { errorCode, lost } from "../../src/h2/core/protocol-error.ts";
import { FrameWriter } from "../../src/h2/frame/writer.ts";
import { Session } from "../../src/h2/session/session.ts";
import { Stream } from "../../src/h2/session/stream.ts";
import { Backends } from "../../src/health/backends.ts";
import { ActiveRequests } from "../../src/proxy/request/active-requests.ts";
import { Exchange } from "../../src/proxy/request/exchange.ts";
import { Trust } from "../../src/upstream/identity/trust.ts";
import { Connection } from "../../src/upstream/pool/connection.ts";
import { needsMore } from "../../src/watch/codec/event.ts";
import { JsonEvents } from "../../src/watch/codec/json-events.ts";

export type Defect = {
  readonly name: string;
  /** Adds the fault and returns a function that removes it. */
  readonly put: () => () => void;
};

/** Replaces a method with `make(method)`. Returns a function that restores it. */
function wrap<T extends object, K extends keyof T>(
  prototype: T,
  name: K,
  make: (original: T[K]) => T[K],
): () => void {
  const original = prototype[name];
  prototype[name] = make(original);
  return () => {
    prototype[name] = original;
  };
}

/** Replaces a getter of Backends. Returns a function that restores it. */
function replaceGetter(name: "silenceOverAt" | "areAllSilent", get: () => unknown): () => void {
  const original = Object.getOwnPropertyDescriptor(Backends.prototype, name);
  if (original === undefined) throw new Error(`Backends has no ${name}`);
  Object.defineProperty(Backends.prototype, name, { get, configurable: true });
  return () => Object.defineProperty(Backends.prototype, name, original);
}

/** Returns a function that returns true at every `count`th call. */
function everyNth(count: number): () => boolean {
  let calls = 0;
  return () => {
    calls += 1;
    return calls % count === 0;
  };
}

export const defects: readonly Defect[] = [
  {
    name: "two streams of an upstream connection are swapped",
    put: () => {
      const isDue = everyNth(20);
      let last: Stream | undefined;
      return wrap(Connection.prototype, "open", (original) => {
        return function (this: Connection, ...parameters) {
          const stream = original.apply(this, parameters);
          if (last !== undefined && !last.isClosed && isDue()) {
            const { owner } = stream;
            stream.accept(last.owner, -1);
            last.accept(owner, -1);
          }
          last = stream;
          return stream;
        };
      });
    },
  },
  {
    name: "credit is dropped",
    put: () => {
      const isDue = everyNth(3);
      return wrap(Stream.prototype, "grant", (original) => {
        return function (this: Stream, count) {
          if (!isDue()) original.call(this, count);
        };
      });
    },
  },
  {
    name: "two DATA frames of a stream change places",
    put: () => {
      const isDue = everyNth(50);
      let kept: { writer: FrameWriter; parameters: Parameters<FrameWriter["data"]> } | undefined;
      const undoTake = wrap(FrameWriter.prototype, "take", (original) => {
        return function (this: FrameWriter) {
          if (kept?.writer === this) kept = undefined;
          return original.call(this);
        };
      });
      const undoData = wrap(FrameWriter.prototype, "data", (original) => {
        return function (this: FrameWriter, ...parameters) {
          const [id, bytes, start, end, endStream] = parameters;
          const length = end - start;
          // The same number of bytes from elsewhere in the stream: those of the frame before this one.
          if (kept?.writer === this && kept.parameters[0] === id && length > 0 && isDue()) {
            const [, before, from] = kept.parameters;
            if (from + length <= before.length)
              return original.call(this, id, Buffer.from(before), from, from + length, endStream);
          }
          const copy = Buffer.from(bytes.subarray(start, end));
          kept = { writer: this, parameters: [id, copy, 0, length, endStream] };
          return original.apply(this, parameters);
        };
      });
      return () => {
        undoTake();
        undoData();
      };
    },
  },
  {
    name: "an answer that was cut off looks whole",
    put: () =>
      wrap(Exchange.prototype, "attemptGone", (original) => {
        return function (this: Exchange, attempt, code) {
          if (this.isAnswered && !this.isEnded) this.down.sendData(Buffer.alloc(0), 0, 0, true);
          return original.call(this, attempt, code);
        };
      }),
  },
  {
    name: "a write that was lost is sent again",
    put: () =>
      wrap(Exchange.prototype, "attemptGone", (original) => {
        return function (this: Exchange, attempt, code) {
          return original.call(
            this,
            attempt,
            code === lost && !this.isAnswered ? errorCode.REFUSED_STREAM : code,
          );
        };
      }),
  },
  {
    name: "what a closed stream still owes is forgotten",
    put: () => wrap(Stream.prototype, "settle", () => () => 0),
  },
  {
    name: "a client that gives up takes the upstream connection with it",
    put: () => {
      const isDue = everyNth(10);
      return wrap(Connection.prototype, "cancel", (original) => {
        return function (this: Connection, ...parameters) {
          if (isDue()) return this.fail(new Failure("backend-lost", "backend", "Stream reset"));
          return original.apply(this, parameters);
        };
      });
    },
  },
  {
    name: "half an event goes on",
    put: () =>
      wrap(JsonEvents.prototype, "next", (original) => {
        return function (this: JsonEvents, bytes, start, end) {
          const behind = original.call(this, bytes, start, end);
          return behind === needsMore ? end : behind;
        };
      }),
  },
  {
    name: "a repeated field is merged",
    put: () =>
      wrap(Session.prototype, "open", (original) => {
        return function (this: Session, fields: readonly Field[], ...rest) {
          const names = new Set<string>();
          const once = fields.filter(({ name }) => names.size !== names.add(name).size);
          return original.call(this, once, ...rest);
        };
      }),
  },
  {
    name: "an exchange that is over is not forgotten",
    put: () => wrap(ActiveRequests.prototype, "remove", () => () => {}),
  },
  {
    name: "everybody is trusted",
    put: () => wrap(Trust.prototype, "classOf", () => () => "proven" as const),
  },
  {
    name: "credit is given before the client has read",
    put: () =>
      wrap(Exchange.prototype, "attemptData", (original) => {
        return function (this: Exchange, ...parameters) {
          const [, , start, end] = parameters;
          original.apply(this, parameters);
          this.sent(end - start);
        };
      }),
  },
  {
    name: "the first answer after a silence of all convicts the other backends at once",
    put: () => replaceGetter("silenceOverAt", () => 0),
  },
  {
    name: "requests do not wait for the end of a silence of all",
    put: () => replaceGetter("areAllSilent", () => false),
  },
  {
    name: "a buffer that was given away is used again",
    put: () => {
      let given: Buffer | undefined;
      const isDue = everyNth(5);
      return wrap(FrameWriter.prototype, "take", (original) => {
        return function (this: FrameWriter) {
          if (isDue()) given?.fill(0, Math.min(9, given.length));
          const buffers = original.call(this);
          given = buffers.find((buffer) => buffer.length > 9);
          return buffers;
        };
      });
    },
  },
];
