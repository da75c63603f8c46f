import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { Failure, wordsOf } from "./failure.ts";

/** Returns a regular file's text. Never blocks. A Failure's message does not contain the file's name. */
export function readText(file: string, limitBytes: number): string | Failure {
  try {
    // Without O_NONBLOCK, opening a named pipe would block the process until another process writes to the pipe.
    const handle = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      if (!fstatSync(handle).isFile()) return new Failure("bad-file", "proxy", "is not a regular file");
      const bytes = Buffer.alloc(limitBytes + 1);
      const length = readSync(handle, bytes);
      if (length > limitBytes) return new Failure("bad-file", "proxy", `is larger than ${limitBytes} bytes`);
      return new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(0, length));
    } finally {
      closeSync(handle);
    }
  } catch (reason) {
    return new Failure("bad-file", "proxy", wordsFor(reason), reason);
  }
}

function wordsFor(reason: unknown): string {
  const known: Readonly<Record<string, string>> = {
    ENOENT: "does not exist",
    EACCES: "may not be read: permission denied",
    ERR_ENCODING_INVALID_ENCODED_DATA: "is not UTF-8 text",
  };
  const code = reason instanceof Error && "code" in reason ? String(reason.code) : "";
  return known[code] ?? wordsOf(reason);
}
