/** The way of a list to its client, on which its version is read in passing; nothing is changed. */
import type { Field } from "../h2/field.ts";
import type { Side } from "../h2/side.ts";
import { ListVersion } from "../watch/list-version.ts";

export class ListSide implements Side {
  readonly #down: Side;
  readonly #tell: (version: string) => void;
  /** Undefined before the answer, and when its version is told. */
  #reading: ListVersion | undefined;

  /** `tell` hears the version of an answer, if it can be read, and "" never. */
  constructor(down: Side, tell: (version: string) => void) {
    this.#down = down;
    this.#tell = tell;
  }

  sendHeaders(fields: readonly Field[], end: boolean): void {
    const valueOf = (name: string): string => fields.find((field) => field.name === name)?.value ?? "";
    if (fields[0]?.value === "200")
      this.#reading = new ListVersion(valueOf("content-type"), valueOf("content-encoding"));
    this.#down.sendHeaders(fields, end);
  }

  sendData(bytes: Buffer, start: number, end: number, endStream: boolean): void {
    this.#reading?.feed(bytes, start, end, endStream);
    const version = this.#reading?.version ?? "";
    this.#down.sendData(bytes, start, end, endStream);
    if (version === "") return;
    this.#reading = undefined;
    this.#tell(version);
  }

  reset(code: number): void {
    this.#down.reset(code);
  }

  grant(count: number): void {
    this.#down.grant(count);
  }

  get queuedBytes(): number {
    return this.#down.queuedBytes;
  }
}
