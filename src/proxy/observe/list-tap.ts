/** Reads a list's version while the list is forwarded to its client; changes nothing. */
import type { Field } from "../../h2/core/field.ts";
import type { StreamWriter } from "../../h2/core/stream-writer.ts";
import { ListVersion } from "../../kube/list-version.ts";
import { BodyTap } from "./body-tap.ts";

export class ListTap extends BodyTap {
  readonly #tell: (version: string) => void;
  /** Undefined before the response, and after its version was reported. */
  #reading: ListVersion | undefined;

  /** `tell` gets the version of a response if it can be read; never "". */
  constructor(down: StreamWriter, tell: (version: string) => void) {
    super(down);
    this.#tell = tell;
  }

  override sendHeaders(fields: readonly Field[], end: boolean): void {
    const valueOf = (name: string): string => fields.find((field) => field.name === name)?.value ?? "";
    if (fields[0]?.value === "200")
      this.#reading = new ListVersion(valueOf("content-type"), valueOf("content-encoding"));
    super.sendHeaders(fields, end);
  }

  override sendData(bytes: Buffer, start: number, end: number, endStream: boolean): void {
    this.#reading?.feed(bytes, start, end, endStream);
    const version = this.#reading?.version ?? "";
    super.sendData(bytes, start, end, endStream);
    if (version === "") return;
    this.#reading = undefined;
    this.#tell(version);
  }
}
