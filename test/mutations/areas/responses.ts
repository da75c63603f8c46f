/** Faults by which a malformed response costs more than its own stream. */
import { type Defect, defect } from "../defect.ts";

export const responses: readonly Defect[] = [
  defect(
    "a response head that is too long ends the connection",
    {
      file: "h2/frame/reader.ts",
      find: "const { skipFields } = this.#streams;",
      replace: "const skipFields: undefined | (() => number) = undefined;",
    },
    ["flows/malformed-responses", "a response head of 240 kB is a 502 that names the size"],
  ),
  defect(
    "a head decoded in parts leaves the fields that it evicts in the table",
    { file: "h2/hpack/hpack-decoder.ts", find: "if (goesToTable) this.#table.clear();", replace: "" },
    ["h2/session/long-heads", "leaves the same table as one decoded whole"],
  ),
  defect(
    "a head that is dropped has no end",
    {
      file: "h2/frame/reader.ts",
      find: "if (this.#work > h2Limits.longBlockBytes)",
      replace: "if (this.#work < 0)",
    },
    ["h2/session/long-heads", "a head above 16 MiB ends the connection"],
  ),
  defect(
    "DATA after the end of a response ends the connection",
    {
      file: "h2/session/streams.ts",
      find: "    if (this.#strayBytes.take(count)) return;\n",
      replace: '    if (!this.#strayBytes.take(count)) throw sessionError(errorCode.STREAM_CLOSED, "x");\n',
    },
    ["h2/session/long-heads", "DATA after END_STREAM in a response resets its stream"],
  ),
  defect(
    "a stream's WINDOW_UPDATE of 0 from a backend ends the connection",
    {
      file: "h2/session/streams.ts",
      find: "if (increment === 0 && (this.#isServer || id === 0))",
      replace: "if (increment === 0)",
    },
    ["h2/session/long-heads", "a WINDOW_UPDATE of 0 in a response resets its stream"],
  ),
  defect(
    "a malformed end of a response that the client has begun to get is not told to the operator",
    {
      file: "proxy/request/failures.ts",
      find: "if (fault !== undefined) journal",
      replace: 'if (fault === "") journal',
    },
    ["flows/malformed-responses", "are named in the journal"],
  ),
];
