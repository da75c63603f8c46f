/**
 * Finds sockets of this network namespace that wait for an acknowledgement. Linux lists them in /proc/net/tcp and tcp6;
 * Node has no API for it. Where these files cannot be read, the result is empty and TCP keepalive must do.
 */
import { type FileHandle, open } from "node:fs/promises";
import { limits } from "../../base/limits.ts";

/** A socket, identified the same way by Node and Linux. */
export type Endpoints = {
  readonly localPort?: number | undefined;
  readonly remotePort?: number | undefined;
  readonly remoteAddress?: string | undefined;
};

const files = ["/proc/net/tcp", "/proc/net/tcp6"] as const;

/**
 * Returns, by the socket's key, how often the kernel has retransmitted, or one more than the unanswered keepalive
 * probes to an idle peer, because the kernel waits a second before the next one. Only sockets with such counts are
 * included.
 */
export async function readRetransmissions(
  tables: readonly string[] = files,
): Promise<ReadonlyMap<string, number>> {
  const texts = await Promise.all(tables.map((file) => readSome(file)));
  return new Map(texts.flatMap((text) => retransmissionsIn(text)));
}

/** Ports and the last four bytes of the peer's address are enough to distinguish our own sockets. */
export function keyOf({ localPort = 0, remotePort = 0, remoteAddress = "" }: Endpoints): string {
  return `${localPort}-${remotePort}-${lastBytes(remoteAddress)}`;
}

/**
 * Parses lines of /proc/net/tcp: "sl local remote state tx:rx timer:when retransmits uid probes ...", the last two
 * decimal.
 */
export function retransmissionsIn(text: string): [string, number][] {
  const line = /^ *\d+: [\dA-F]+:([\dA-F]{4}) ([\dA-F]+):([\dA-F]{4}) 01 \S+ \S+ ([\dA-F]{8}) +\d+ +(\d+) /gm;
  return [...text.matchAll(line)].flatMap((match): [string, number][] => {
    const [, local = "", address = "", remote = "", count = "", probes = "0"] = match;
    const inVain = probes === "0" ? 0 : Number(probes) + 1;
    const retransmits = Math.max(Number.parseInt(count, 16), inVain);
    if (retransmits === 0) return [];
    const [localPort, remotePort] = [Number.parseInt(local, 16), Number.parseInt(remote, 16)];
    return [[`${localPort}-${remotePort}-${swapped(address.slice(-8))}`, retransmits]];
  });
}

/** The kernel writes each 32 bits in the machine's byte order: least significant byte first on all platforms of Node. */
function swapped(word: string): string {
  return (word.match(/../g) ?? []).toReversed().join("").toLowerCase();
}

function lastBytes(address: string): string {
  const v4 = /(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(address)?.slice(1);
  if (v4 !== undefined) return v4.map((byte) => Number(byte).toString(16).padStart(2, "0")).join("");
  const [unscoped = ""] = address.split("%", 1);
  const [high = "", low = ""] = unscoped.split(":").slice(-2);
  return `${high.padStart(4, "0")}${low.padStart(4, "0")}`.toLowerCase();
}

async function readSome(file: string): Promise<string> {
  try {
    await using handle = await open(file);
    return await readFrom(handle);
  } catch {
    // Another system, or no permission to read it.
    return "";
  }
}

async function readFrom(handle: FileHandle): Promise<string> {
  const bytes = Buffer.allocUnsafe(limits.socketTableBytes);
  let length = 0;
  while (length < bytes.length) {
    // The kernel gives a page at a time.
    // oxlint-disable-next-line no-await-in-loop
    const { bytesRead } = await handle.read(bytes, length, bytes.length - length);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return bytes.toString("latin1", 0, length);
}
