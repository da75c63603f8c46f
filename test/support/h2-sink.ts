/**
 * Records the frames that a frame reader reports. DATA of one stream is joined, so that the record does not depend on
 * how the bytes were split.
 */
import type { SessionFrames, StreamFrames } from "../../src/h2/frame/frame.ts";

export class SinkRecord implements StreamFrames, SessionFrames {
  readonly lines: string[] = [];
  /** Number of pieces in which DATA was reported. */
  pieces = 0;
  #body: { readonly id: number; bytes: Buffer } | undefined;

  data(...[id, bytes, start, end, endStream]: Parameters<StreamFrames["data"]>): void {
    this.pieces += 1;
    if (this.#body?.id !== id) this.#flush();
    this.#body ??= { id, bytes: Buffer.alloc(0) };
    this.#body.bytes = Buffer.concat([this.#body.bytes, bytes.subarray(start, end)]);
    if (endStream) this.#flush(" END");
  }

  padding(id: number, octets: number): void {
    this.#write(`padding ${id} ${octets}`);
  }

  headers(...[id, bytes, start, end, endStream, onSelf]: Parameters<StreamFrames["headers"]>): void {
    const block = bytes.toString("latin1", start, end);
    this.#write(`headers ${id} ${JSON.stringify(block)}${endStream ? " END" : ""}${onSelf ? " self" : ""}`);
  }

  priority(id: number, dependsOnSelf: boolean): void {
    this.#write(`priority ${id}${dependsOnSelf ? " self" : ""}`);
  }

  reset(id: number, code: number): void {
    this.#write(`reset ${id} ${code}`);
  }

  settings(bytes: Buffer, start: number, end: number): void {
    this.#write(`settings ${bytes.toString("hex", start, end)}`);
  }

  settingsAcknowledged(): void {
    this.#write("settings ack");
  }

  ping(bytes: Buffer, start: number): void {
    this.#write(`ping ${bytes.toString("hex", start, start + 8)}`);
  }

  pong(bytes: Buffer, start: number): void {
    this.#write(`pong ${bytes.toString("hex", start, start + 8)}`);
  }

  goAwayReceived(lastId: number, code: number): void {
    this.#write(`goaway ${lastId} ${code}`);
  }

  windowUpdate(id: number, increment: number): void {
    this.#write(`update ${id} +${increment}`);
  }

  unknown(octets: number): void {
    this.#write(`unknown ${octets}`);
  }

  /** Returns everything recorded so far, including DATA whose frame is not complete. */
  get told(): string[] {
    this.#flush();
    return this.lines;
  }

  #write(line: string): void {
    this.#flush();
    this.lines.push(line);
  }

  #flush(end = ""): void {
    const body = this.#body;
    this.#body = undefined;
    if (body !== undefined) this.lines.push(`data ${body.id} ${body.bytes.toString("base64")}${end}`);
  }
}
