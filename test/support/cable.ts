/** Two wires joined in memory: what one end writes the other receives in a later loop turn of the manual clock. */
import { Failure } from "../../src/base/failure.ts";
import type { Wire, WireOwner } from "../../src/proxy/net/wire.ts";
import type { ManualClock } from "./clock.ts";

export type Cable = {
  near(owner: WireOwner): Wire;
  far(owner: WireOwner): Wire;
  /** Both ends close at once; what was under way is gone. */
  cut(reason: string): void;
  /** What is written from now on vanishes, without a word: a black hole. */
  blackHole(): void;
  /** Loses writes of the far end above so many bytes, and all that it writes behind one: TCP delivers in order. */
  loseLarge(bytes: number): void;
  /** What is written from now on waits, until the returned function lets it go on. */
  hold(): () => void;
};

type End = { owner: WireOwner | undefined; isClosed: boolean; mostBytes: number; isStuck: boolean };

export function cable(clock: ManualClock): Cable {
  const ends: [End, End] = [
    { owner: undefined, isClosed: false, mostBytes: Number.POSITIVE_INFINITY, isStuck: false },
    { owner: undefined, isClosed: false, mostBytes: Number.POSITIVE_INFINITY, isStuck: false },
  ];
  let isHole = false;
  let held: (() => void)[] | undefined;
  const close = (end: End, failure: Failure | undefined): void => {
    if (end.isClosed) return;
    end.isClosed = true;
    end.owner?.closed(failure);
  };
  const attach = (own: End, other: End, owner: WireOwner): Wire => {
    own.owner = owner;
    return {
      write(buffers, written) {
        const bytes = Buffer.concat([...buffers]);
        written?.();
        own.isStuck ||= bytes.length > own.mostBytes;
        if (!own.isClosed && !isHole && !own.isStuck) {
          const deliver = (): void => {
            if (other.isClosed || isHole) return;
            other.owner?.receive(bytes);
            // The buffer was lent for the call: an owner that kept a part of it reads this now.
            bytes.fill(0xee);
          };
          if (held === undefined) clock.soon(deliver);
          else held.push(deliver);
        }
        return true;
      },
      end() {
        const finish = (): void => {
          if (!isHole) close(other, undefined);
          close(own, undefined);
        };
        // Behind what was written before it.
        if (held === undefined) clock.soon(finish);
        else held.push(finish);
      },
      destroy() {
        clock.soon(() => {
          if (!isHole) close(other, new Failure("backend-lost", "backend", "read ECONNRESET"));
          close(own, undefined);
        });
      },
    };
  };
  return {
    near: (owner) => attach(ends[0], ends[1], owner),
    far: (owner) => attach(ends[1], ends[0], owner),
    cut(reason) {
      for (const end of ends) close(end, new Failure("backend-lost", "backend", reason));
    },
    blackHole() {
      isHole = true;
    },
    loseLarge(bytes) {
      ends[1].mostBytes = bytes;
    },
    hold() {
      held = [];
      return () => {
        const waiting = held ?? [];
        held = undefined;
        for (const deliver of waiting) clock.soon(deliver);
      };
    },
  };
}
