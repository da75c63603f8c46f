/** Parses server-sent events (WHATWG HTML §9.2.6), as far as the API uses them. Pure. */
import { StringDecoder } from "node:string_decoder";
import { adminLimits } from "../../admin/http/limits.ts";

export type ServerSentEvent = { readonly id: string; readonly name: string; readonly data: string };

export class SseReader {
  readonly #decoder = new StringDecoder("utf8");
  #rest = "";

  /** Returns the events that are complete. Undefined: the size limit was exceeded without the end of an event. */
  push(chunk: Buffer): readonly ServerSentEvent[] | undefined {
    const blocks = (this.#rest + this.#decoder.write(chunk)).split("\n\n");
    this.#rest = blocks.pop() ?? "";
    if (this.#rest.length > adminLimits.eventBacklogBytes) return undefined;
    return blocks.map((block) => eventIn(block)).filter(({ data }) => data !== "");
  }
}

/** Ignores comments and unknown fields. */
function eventIn(block: string): ServerSentEvent {
  const fields = new Map<string, string>();
  for (const line of block.split("\n")) {
    const mark = line.indexOf(":");
    if (mark > 0) fields.set(line.slice(0, mark), line.slice(mark + 1).replace(/^ /, ""));
  }
  return { id: fields.get("id") ?? "", name: fields.get("event") ?? "", data: fields.get("data") ?? "" };
}
