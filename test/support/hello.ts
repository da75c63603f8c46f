/** Builds TLS ClientHello messages byte by byte. */

export type HelloOptions = {
  readonly serverName?: string;
  /** Length of a padding extension in bytes. */
  readonly paddingBytes?: number;
  /** The largest number of bytes in one TLS record. */
  readonly recordBytes?: number;
  /** Complete extensions that come before the server name. */
  readonly extensions?: readonly Buffer[];
};

export function vector(octets: 1 | 2 | 3, ...bodies: readonly Buffer[]): Buffer {
  const body = Buffer.concat([...bodies]);
  const length = Buffer.alloc(octets);
  length.writeUIntBE(body.length, 0, octets);
  return Buffer.concat([length, body]);
}

export function extension(type: number, body: Buffer): Buffer {
  return Buffer.concat([Buffer.from([type >> 8, type & 0xff]), vector(2, body)]);
}

export function nameExtension(...names: readonly string[]): Buffer {
  const entries = names.map((name) =>
    Buffer.concat([Buffer.from([0]), vector(2, Buffer.from(name, "latin1"))]),
  );
  return extension(0, vector(2, ...entries));
}

/** Returns the handshake message with its header, without TLS records. */
export function helloMessage({ serverName, paddingBytes = 0, extensions = [] }: HelloOptions = {}): Buffer {
  const all = [...extensions];
  if (serverName !== undefined) all.push(nameExtension(serverName));
  // One extension and the list of extensions are each limited to 65,535 bytes.
  if (paddingBytes > 0) all.push(extension(21, Buffer.alloc(paddingBytes)));
  const body = Buffer.concat([
    Buffer.from([3, 3]),
    Buffer.alloc(32, 7),
    vector(1, Buffer.alloc(32, 8)),
    vector(2, Buffer.from([0x13, 0x01])),
    vector(1, Buffer.from([0])),
    vector(2, ...all),
  ]);
  return Buffer.concat([Buffer.from([1]), vector(3, body)]);
}

export function inRecords(message: Buffer, recordBytes = 16_384): Buffer {
  const records: Buffer[] = [];
  for (let at = 0; at < message.length; at += recordBytes)
    records.push(
      Buffer.concat([Buffer.from([0x16, 3, 1]), vector(2, message.subarray(at, at + recordBytes))]),
    );
  return Buffer.concat(records);
}

export function hello(options: HelloOptions = {}): Buffer {
  return inRecords(helloMessage(options), options.recordBytes);
}
