/** Faults in the memory for bytes: blocks and buffers that are not freed or not reused, and limits that are not kept. */
import { type Defect, defect } from "../defect.ts";

export const memory: readonly Defect[] = [
  defect(
    "no output buffer is used again",
    {
      file: "h2/core/output-buffers.ts",
      find: "unusedBytes + buffer.length > h2Limits.unusedOutputBytes",
      replace: "unusedBytes + buffer.length > 0",
    },
    ["h2/core/output-buffers", "thousands of buffers of one turn are used again in the next"],
  ),
  defect(
    "unused output buffers have no limit",
    {
      file: "h2/core/output-buffers.ts",
      find: "unusedBytes + buffer.length > h2Limits.unusedOutputBytes",
      replace: "unusedBytes > 100 * h2Limits.unusedOutputBytes",
    },
    ["h2/core/output-buffers", "unused buffers have a limit"],
  ),
  defect(
    "output buffers of a burst are kept for ever",
    {
      file: "h2/core/output-buffers.ts",
      find: "pool.unused.length -= pool.fewest;",
      replace: "pool.unused.length -= 0;",
    },
    ["h2/core/output-buffers", "shrinkOutput keeps the buffers that were used since its last call"],
  ),
  defect(
    "a ClientHello fills the first buffer of Node's TLS",
    {
      file: "upstream/net/tls-input.ts",
      find: "const pieceBytes = 1023;",
      replace: "const pieceBytes = 1024;",
    },
    ["upstream/net/tls-input", "a long ClientHello reaches TLS whole"],
  ),
  defect(
    "what waits in all has no bound",
    { file: "h2/core/buffered.ts", find: "return this.#bytes > this.#limitBytes;", replace: "return false;" },
    ["proxy/cluster/data-path", "when too much waits"],
  ),
  defect(
    "the blocks of kept bytes are not given back",
    {
      file: "h2/core/buffered.ts",
      find: "for (const { block } of pieces) if (block !== undefined) giveBack(block);",
      replace: "",
    },
    ["h2/core/buffered", "which go back once"],
  ),
  defect(
    "kept bytes are still read after they were dropped",
    {
      file: "h2/core/buffered.ts",
      find: "if (this.#pieces !== pieces) return;",
      replace: "",
    },
    ["h2/core/buffered", "no block is read that may have another user"],
  ),
  defect(
    "a second chunk of a few bytes takes a block",
    {
      file: "h2/core/buffered.ts",
      find: "kept + count < smallBytes ?",
      replace: "kept === 0 && count < smallBytes ?",
    },
    ["h2/core/buffered", "a few bytes take no block"],
  ),
  defect(
    "moved blocks are not given back after an internal error",
    {
      file: "h2/core/buffered.ts",
      find: "    } finally {\n",
      replace: "    } catch (error) {\n      throw error;\n    }\n    {\n",
    },
    ["h2/core/buffered", "all blocks go back, each once"],
  ),
];
