/** Reads the files that are named in the arguments of commands. */
import { Failure } from "../../../base/failure.ts";
import { readText } from "../../../base/read-text.ts";

/** Reads a text file; "-" stands for stdin. */
export async function readInput(file: string, limitBytes: number): Promise<string | Failure> {
  if (file !== "-") return readText(file, limitBytes);
  let text = "";
  process.stdin.setEncoding("utf8");
  for await (const chunk of process.stdin) {
    text += String(chunk);
    if (text.length > limitBytes)
      return new Failure("bad-file", "client", `is larger than ${limitBytes} bytes`);
  }
  return text;
}
