/** One plain request. Its response is complete, or it counts as none. */
import type { Field } from "../../../src/h2/core/field.ts";
import type { StreamListener } from "../../../src/h2/core/stream-writer.ts";
import type { Stream } from "../../../src/h2/session/stream.ts";
import type { Asked, Caller } from "./caller.ts";

export type Answer = {
  /** 0 if the stream was reset or lost before the response head. */
  readonly status: number;
  readonly retryAfterMs: number | undefined;
  readonly body: string;
  /** True if the response ended with END_STREAM. */
  readonly isWhole: boolean;
  readonly ms: number;
  /** Milliseconds until the final response head arrived. Undefined if none arrived. */
  readonly headMs: number | undefined;
};

export class PlainCall implements StreamListener {
  readonly #caller: Caller;
  readonly #over: (answer: Answer) => void;
  readonly #stream: Stream;
  readonly #openedAt: number;
  readonly #auditId: string;
  readonly #pieces: Buffer[] = [];
  #status = 0;
  #headMs: number | undefined;
  #retryAfterMs: number | undefined;
  #length = -1;
  #isOver = false;

  constructor(caller: Caller, asked: Asked, over: (answer: Answer) => void) {
    this.#caller = caller;
    this.#over = over;
    this.#auditId = asked.auditId;
    this.#openedAt = caller.findings.world.now();
    this.#stream = caller.ask(asked, this);
  }

  headers(fields: Field[], end: boolean): void {
    const value = (wanted: string): string | undefined => fields.find(({ name }) => name === wanted)?.value;
    const status = Number(value(":status") ?? 0);
    if (this.#status === 0 && status >= 200) {
      this.#status = status;
      this.#headMs = this.#caller.findings.world.now() - this.#openedAt;
      const retryAfter = value("retry-after");
      this.#retryAfterMs = retryAfter === undefined ? undefined : Number(retryAfter) * 1_000;
      this.#length = Number(value("content-length") ?? -1);
    }
    if (end) this.#end(true);
  }

  data(bytes: Buffer, start: number, end: number, isLast: boolean): void {
    this.#stream.grant(end - start);
    this.#pieces.push(Buffer.from(bytes.subarray(start, end)));
    if (isLast) this.#end(true);
  }

  reset(): void {
    this.#end(false);
  }

  sent(): void {}

  #end(isWhole: boolean): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const { findings } = this.#caller;
    const body = Buffer.concat(this.#pieces);
    if (isWhole && this.#length >= 0 && body.length !== this.#length)
      findings.wrong(
        "whole",
        `${this.#auditId}: ${body.length} of ${this.#length} bytes passed as the whole answer`,
      );
    findings.tell(() => `${this.#auditId} answered ${this.#status}${isWhole ? "" : ", cut"}`);
    const ms = findings.world.now() - this.#openedAt;
    this.#over({
      status: this.#status,
      retryAfterMs: this.#retryAfterMs,
      body: body.toString(),
      isWhole,
      ms,
      headMs: this.#headMs,
    });
  }
}
