/** Files as one archive, in the form of POSIX.1-1988 (ustar) that every tar reads. Pure. */

export type ArchiveFile = { readonly name: string; readonly text: string };

const block = 512;

/** `wallMs` is when they were made. @throws {RangeError} a name of more than 100 octets, which the form cannot hold */
export function tarOf(files: readonly ArchiveFile[], wallMs: number): Buffer {
  const parts = files.flatMap(({ name, text }) => {
    const body = Buffer.from(text);
    return [headOf(name, body.length, wallMs), body, Buffer.alloc((block - (body.length % block)) % block)];
  });
  // Two empty blocks end it.
  return Buffer.concat([...parts, Buffer.alloc(2 * block)]);
}

function headOf(name: string, size: number, wallMs: number): Buffer {
  if (Buffer.byteLength(name) > 100) throw new RangeError(`Too long a name for tar: "${name}"`);
  const head = Buffer.alloc(block);
  const octal = (value: number, at: number, chars: number): void => {
    head.write(`${value.toString(8).padStart(chars - 1, "0")}\0`, at);
  };
  head.write(name, 0);
  octal(0o600, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(size, 124, 12);
  octal(Math.floor(wallMs / 1000), 136, 12);
  // The sum is taken with eight spaces in its own place.
  head.write(" ".repeat(8), 148);
  head.write("0", 156);
  head.write("ustar\u000000", 257);
  octal(
    head.reduce((sum, octet) => sum + octet, 0),
    148,
    7,
  );
  return head;
}
