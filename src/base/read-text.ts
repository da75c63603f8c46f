import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { Failure, wordsOf } from "./failure.ts";
import { limits } from "./limits.ts";

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

/** Returns the bearer token in a file. A Failure's message contains the file's name, and no part of its content. */
export function readToken(file: string): string | Failure {
  const text = readText(file, limits.tokenBytes);
  const token = text instanceof Failure ? "" : text.trim();
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  const why =
    text instanceof Failure
      ? text.message
      : "is not a bearer token: it has a line break or a space, or is empty";
  return new Failure("bad-file", "proxy", `${JSON.stringify(file)} ${why}`);
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
