/**
 * Records which blocks of the sources have run, as V8 counts them (`node:inspector`, precise coverage). The counters
 * are read once for a batch of inputs, because one reading costs as much as a hundred inputs.
 */
import { Session } from "node:inspector";

type Range = { readonly startOffset: number; readonly endOffset: number; readonly count: number };
type Script = {
  readonly url: string;
  readonly functions: readonly { readonly ranges: readonly Range[]; readonly isBlockCoverage: boolean }[];
};

/**
 * The state of one source file: which of its characters have run, and the blocks and functions that V8 has reported, by
 * "start-end".
 */
type Seen = {
  readonly ran: Uint8Array;
  readonly blocks: Map<string, number>;
  readonly functions: Map<string, Range>;
};

export class Coverage {
  readonly #session = new Session();
  readonly #isWanted: (url: string) => boolean;
  readonly #sources = new Map<string, Seen>();

  /** Records only sources whose url `isWanted` accepts. Import them after this, or V8 does not count them. */
  constructor(isWanted: (url: string) => boolean) {
    this.#isWanted = isWanted;
    this.#session.connect();
    this.#session.post("Profiler.enable");
    this.#session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
  }

  /**
   * True if code has run since the previous reading that had never run before. That code is remembered only if `keeps`
   * is true.
   */
  gained(keeps: boolean): boolean {
    let isNew = false;
    for (const script of this.#read())
      for (const { ranges } of script.functions) {
        if ((ranges[0]?.count ?? 0) === 0) continue;
        if (this.#mark(this.#seen(script.url, ranges), ranges, keeps)) isNew = true;
      }
    return isNew;
  }

  /** Returns the number of blocks that V8 has reported so far, and how many of them have run. */
  blocks(isMeant: (url: string) => boolean): { readonly all: number; readonly ran: number } {
    let all = 0;
    let ran = 0;
    for (const [url, seen] of this.#sources) {
      if (!isMeant(url)) continue;
      for (const start of seen.blocks.values()) {
        all += 1;
        ran += seen.ran[start] ?? 0;
      }
    }
    return { all, ran };
  }

  stop(): void {
    this.#session.disconnect();
  }

  #read(): readonly Script[] {
    let scripts: readonly Script[] = [];
    // A session in the same thread calls back before post() returns.
    this.#session.post("Profiler.takePreciseCoverage", (_error, answer) => {
      scripts = answer.result.filter(({ url }) => this.#isWanted(url));
    });
    for (const { url, functions } of scripts)
      for (const { ranges } of functions) this.#tell(this.#seen(url, ranges), ranges);
    return scripts;
  }

  #seen(url: string, ranges: readonly Range[]): Seen {
    const known = this.#sources.get(url);
    const end = ranges[0]?.endOffset ?? 0;
    if (known !== undefined && known.ran.length >= end) return known;
    const ran = new Uint8Array(2 * end);
    if (known !== undefined) ran.set(known.ran);
    const blocks = known?.blocks ?? new Map<string, number>();
    const seen = { ran, blocks, functions: known?.functions ?? new Map<string, Range>() };
    this.#sources.set(url, seen);
    return seen;
  }

  /**
   * V8 reports a block only if its count differs from that of the enclosing block, so the list of blocks grows over
   * time.
   */
  #tell({ blocks, functions }: Seen, ranges: readonly Range[]): void {
    const [whole] = ranges;
    if (whole !== undefined) functions.set(`${whole.startOffset}-${whole.endOffset}`, whole);
    for (const { startOffset, endOffset } of ranges) blocks.set(`${startOffset}-${endOffset}`, startOffset);
  }

  /**
   * Marks the ranges of one function, outermost first. Nested functions are omitted, because V8 reports each of them
   * separately.
   */
  #mark({ ran, functions }: Seen, ranges: readonly Range[], keeps: boolean): boolean {
    const [whole] = ranges;
    if (whole === undefined) return false;
    const now = new Uint8Array(whole.endOffset - whole.startOffset).fill(1);
    for (const { startOffset, endOffset, count } of ranges)
      now.fill(count > 0 ? 1 : 0, startOffset - whole.startOffset, endOffset - whole.startOffset);
    for (const { startOffset, endOffset } of functions.values())
      if (isInside({ startOffset, endOffset }, whole))
        now.fill(0, startOffset - whole.startOffset, endOffset - whole.startOffset);
    let isNew = false;
    for (let at = 0; at < now.length; at += 1) {
      if (now[at] === 0 || ran[whole.startOffset + at] === 1) continue;
      isNew = true;
      if (!keeps) return true;
      ran[whole.startOffset + at] = 1;
    }
    return isNew;
  }
}

function isInside(one: Omit<Range, "count">, other: Range): boolean {
  const size = ({ startOffset, endOffset }: Omit<Range, "count">): number => endOffset - startOffset;
  const isWithin = one.startOffset >= other.startOffset && one.endOffset <= other.endOffset;
  return isWithin && size(one) < size(other);
}
