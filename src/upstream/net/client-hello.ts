/**
 * Finds the server name (RFC 6066 §3) in a client's ClientHello, which is in clear text (RFC 8446 §4.1.2). A
 * ClientHello may be split over several records (RFC 8446 §5.1). The bytes are not changed.
 */

/** Maximum length of a ClientHello, as in Go's servers. */
export const helloBytes = 64 * 1024;
/** Maximum number of records of one ClientHello. One is usual; post-quantum keys need two or three. */
export const helloRecords = 16;

export type Hello =
  | { readonly state: "partial" }
  /** The bytes are not TLS. */
  | { readonly state: "foreign" }
  | { readonly state: "malformed"; readonly reason: string }
  | WholeHello;

export type WholeHello = {
  readonly state: "whole";
  /** Number of bytes up to the end of the ClientHello's last record. */
  readonly length: number;
  /** The server name in lower case, without a trailing dot. Undefined for clients that dial an IP address. */
  readonly serverName: string | undefined;
  /** True if the client may send a request before the server has answered (0-RTT). */
  readonly hasEarlyData: boolean;
};

const recordHeaderBytes = 5;
const messageHeaderBytes = 4;
const handshakeRecord = 0x16;
const clientHello = 1;
/** Maximum number of content bytes in one record (RFC 8446 §5.1). */
const recordBytes = 16_384;
const serverNameExtension = 0;
const hostName = 0;
const earlyDataExtension = 42;

class Malformed extends Error {}

/** Parses a ClientHello. `seen`: all bytes that the client has sent so far. */
export function readHello(seen: Buffer): Hello {
  if (seen.length > 0 && seen[0] !== handshakeRecord) return { state: "foreign" };
  try {
    const found = findMessage(seen);
    if (found === undefined) return { state: "partial" };
    const { pieces, length } = found;
    return { state: "whole", length, ...readMessage(new Cursor(Buffer.concat(pieces))) };
  } catch (error) {
    if (error instanceof Malformed) return { state: "malformed", reason: error.message };
    throw error;
  }
}

/** Returns the contents of the ClientHello's records, and where the last record ends; undefined: bytes are missing. */
function findMessage(seen: Buffer): { readonly pieces: Buffer[]; readonly length: number } | undefined {
  const pieces: Buffer[] = [];
  const header: number[] = [];
  let wantedBytes = Infinity;
  let joinedBytes = 0;
  for (let at = 0; at + recordHeaderBytes <= seen.length; ) {
    if (pieces.length >= helloRecords) throw new Malformed("it has too many records");
    const end = at + recordHeaderBytes + lengthOfRecord(seen, at);
    const piece = seen.subarray(at + recordHeaderBytes, end);
    header.push(...piece.subarray(0, messageHeaderBytes - header.length));
    if (header.length === messageHeaderBytes) wantedBytes = lengthOfMessage(header);
    joinedBytes += end - at - recordHeaderBytes;
    if (joinedBytes > wantedBytes) throw new Malformed("other data follows it in its record");
    if (end > seen.length) return undefined;
    pieces.push(piece);
    if (joinedBytes === wantedBytes) return { pieces, length: end };
    at = end;
  }
  return undefined;
}

function lengthOfRecord(seen: Buffer, at: number): number {
  const length = seen.readUInt16BE(at + 3);
  if (seen[at] !== handshakeRecord || seen[at + 1] !== 3)
    throw new Malformed("not all of its records are handshake records");
  // Rejects empty records, which RFC 8446 §5.1 forbids.
  if (length === 0 || length > recordBytes) throw new Malformed(`it has a record of ${length} bytes`);
  return length;
}

function lengthOfMessage([type = 0, high = 0, middle = 0, low = 0]: readonly number[]): number {
  const length = messageHeaderBytes + high * 65_536 + middle * 256 + low;
  if (type !== clientHello) throw new Malformed(`its message type is ${type}`);
  if (length > helloBytes) throw new Malformed(`it has ${length} bytes`);
  return length;
}

/** Reads the fields of a message. Throws if a field is longer than the rest of the message. */
class Cursor {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  take(count: number): Buffer {
    const end = this.#at + count;
    if (end > this.#bytes.length) throw new Malformed("it ends inside a field");
    const taken = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return taken;
  }

  number(bytes: 1 | 2): number {
    return this.take(bytes).readUIntBE(0, bytes);
  }

  /** Reads a vector whose content follows a length of `bytes` bytes. */
  vector(bytes: 1 | 2): Cursor {
    return new Cursor(this.take(this.number(bytes)));
  }

  get text(): string {
    return this.#bytes.toString("latin1");
  }
}

function readMessage(message: Cursor): Pick<WholeHello, "serverName" | "hasEarlyData"> {
  const versionBytes = 2;
  const randomBytes = 32;
  message.take(messageHeaderBytes + versionBytes + randomBytes);
  message.vector(1); // session id
  message.vector(2); // cipher suites
  message.vector(1); // compression methods
  let serverName: string | undefined;
  let hasEarlyData = false;
  // TLS 1.2 allows a ClientHello without extensions.
  const extensions = message.isAtEnd ? message : message.vector(2);
  if (!message.isAtEnd) throw new Malformed("other data follows its extensions");
  while (!extensions.isAtEnd) {
    const type = extensions.number(2);
    const body = extensions.vector(2);
    if (type === serverNameExtension) {
      if (serverName !== undefined) throw new Malformed("it names two servers");
      serverName = readServerName(body);
    } else if (type === earlyDataExtension) hasEarlyData = true;
  }
  return { serverName, hasEarlyData };
}

function readServerName(body: Cursor): string {
  const names = body.vector(2);
  const type = names.number(1);
  const name = names.vector(2);
  if (!names.isAtEnd || !body.isAtEnd || type !== hostName) throw new Malformed("it names two servers");
  const text = name.text.toLowerCase().replace(/\.$/, "");
  if (!/^[!-~]{1,253}$/.test(text)) throw new Malformed("its server name is not valid");
  return text;
}

/**
 * Returns the entry with this lower-case name, or else the entry with `*` in place of the name's first label;
 * undefined: there is neither.
 */
export function entryNamed<T>(
  entries: readonly T[],
  namesOf: (entry: T) => readonly string[],
  name: string,
): T | undefined {
  const wildcard = name.replace(/^[^.]+/, "*");
  const named = (wanted: string): T | undefined => entries.find((entry) => namesOf(entry).includes(wanted));
  return named(name) ?? named(wildcard);
}
