/**
 * One HTTP/2 session under test with a scripted peer, a manual clock, and stream owners that record their callbacks.
 */
import { Field } from "../../src/h2/core/field.ts";
import type { RequestHead } from "../../src/h2/core/fields.ts";
import { FlushScheduler } from "../../src/h2/core/flush-scheduler.ts";
import type { ProtocolError } from "../../src/h2/core/protocol-error.ts";
import type { StreamListener } from "../../src/h2/core/stream-writer.ts";
import { Session } from "../../src/h2/session/session.ts";
import type { Stream } from "../../src/h2/session/stream.ts";
import { type ManualClock, manualClock } from "./clock.ts";
import { type Fields, settings } from "./h2-frames.ts";
import { H2Peer } from "./h2-peer.ts";

export function fieldsOf(fields: Fields): Field[] {
  return fields.map(([name, value]) => new Field(name, value));
}

/** A stream owner that records its callbacks, one line each, and grants flow-control credit when the test says so. */
export class Ear implements StreamListener {
  readonly lines: string[] = [];
  readonly pieces: Buffer[] = [];
  request: RequestHead | undefined;
  /** Callbacks that replace the record, if set. */
  onData: ((count: number, end: boolean) => void) | undefined;
  onSent: ((count: number) => void) | undefined;
  onReset: ((code: number) => void) | undefined;
  onHeaders: ((end: boolean) => void) | undefined;
  sentBytes = 0;

  headers(fields: Field[], end: boolean): void {
    this.lines.push(
      `headers ${fields.map((field) => `${field.name}=${field.value}`).join(" ")}${end ? " end" : ""}`,
    );
    this.onHeaders?.(end);
  }

  data(bytes: Buffer, start: number, end: number, endStream: boolean): void {
    this.pieces.push(Buffer.from(bytes.subarray(start, end)));
    if (endStream) this.lines.push("end");
    this.onData?.(end - start, endStream);
  }

  reset(code: number): void {
    this.lines.push(`reset ${code}`);
    this.onReset?.(code);
  }

  sent(count: number): void {
    this.sentBytes += count;
    this.onSent?.(count);
  }

  get body(): Buffer {
    return Buffer.concat(this.pieces);
  }
}

export type Opened = { readonly stream: Stream; readonly ear: Ear };

export class SessionRig {
  readonly clock: ManualClock = manualClock();
  readonly peer: H2Peer;
  readonly session: Session;
  readonly opened: Opened[] = [];
  /** The events of the session itself, one line each. */
  readonly lines: string[] = [];
  writes = 0;
  /** The value that the fake socket returns from a write. */
  takes = true;
  onOpened: ((opened: Opened) => void) | undefined;
  onChanged: (() => void) | undefined;

  constructor(role: "server" | "client", maxStreams?: number) {
    this.clock.advance(1000);
    this.peer = new H2Peer(
      { deliver: (chunk) => this.session.receive(chunk), turn: () => this.clock.turn() },
      role === "client",
    );
    const owner = {
      opened: (stream: Stream, request: RequestHead, end: boolean) => this.#open(stream, request, end),
      write: (buffers: Buffer[]) => this.#write(buffers),
      changed: () => this.onChanged?.(),
      ponged: (number: number) => void this.lines.push(`ponged ${number}`),
      ended: (error: ProtocolError | undefined) => void this.lines.push(`ended ${error?.code ?? "well"}`),
    };
    const parts = { role, clock: this.clock, turn: new FlushScheduler(this.clock), owner };
    this.session = new Session(maxStreams === undefined ? parts : { ...parts, maxStreams });
  }

  /** The stream opened last. */
  get last(): Opened {
    const last = this.opened.at(-1);
    if (last === undefined) throw new Error("No stream was opened");
    return last;
  }

  #open(stream: Stream, request: RequestHead, end: boolean): Ear {
    const ear = new Ear();
    ear.request = request;
    ear.lines.push(`${request.method} ${request.path}${end ? " end" : ""}`);
    const opened = { stream, ear };
    this.opened.push(opened);
    this.onOpened?.(opened);
    return ear;
  }

  #write(buffers: Buffer[]): boolean {
    this.writes += 1;
    this.peer.hears(buffers);
    return this.takes;
  }
}

/** Returns a server session after the exchange of preface and SETTINGS. */
export function serverRig(first = settings(), maxStreams?: number): SessionRig {
  const rig = new SessionRig("server", maxStreams);
  rig.peer.greets(first);
  rig.peer.heard();
  return rig;
}

/** Runs one loop turn, and returns the last frame that the session wrote. */
export function lastLine(rig: SessionRig): string | undefined {
  rig.clock.turn();
  return rig.peer.heard().at(-1);
}

/** Returns a client session after the exchange of preface and SETTINGS. */
export function clientRig(first = settings()): SessionRig {
  const rig = new SessionRig("client");
  rig.clock.turn();
  rig.peer.sends(first);
  rig.peer.heard();
  return rig;
}
