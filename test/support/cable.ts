/**
 * Two in-memory sockets connected to each other. What one end writes, the other receives in a later loop turn of the
 * manual clock.
 */
import { Failure } from "../../src/base/failure.ts";
import type { Wire, WireOwner } from "../../src/upstream/net/wire.ts";
import type { ManualClock } from "./clock.ts";

export type Cable = {
  near(owner: WireOwner): Wire;
  far(owner: WireOwner): Wire;
  /** Closes both ends at once. Data in transit is lost. */
  cut(reason: string): void;
  /** Drops all data that is written from now on, in both directions, and reports no error to either end. */
  blackHole(): void;
  /**
   * Drops each write of the far end that is longer than `bytes`, and everything that this end writes later, because TCP
   * delivers in order.
   */
  loseLarge(bytes: number): void;
  /** Holds back the data that is written from now on, until the returned function is called. */
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
            // The buffer is valid only during the call. Overwriting it reveals an owner that has kept a reference.
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
        // The close is delivered after the data that was written before it.
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
