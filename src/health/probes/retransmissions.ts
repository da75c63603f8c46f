/**
 * Finds the sockets in this network namespace that have unacknowledged data, from Linux's /proc/net/tcp and tcp6. If
 * these files cannot be read, the result is unknown, and only TCP keepalive finds dead peers.
 */
import { type FileHandle, open } from "node:fs/promises";
import { healthLimits } from "../limits.ts";

export type Endpoints = {
  readonly localPort?: number | undefined;
  readonly remotePort?: number | undefined;
  readonly remoteAddress?: string | undefined;
};

const files = ["/proc/net/tcp", "/proc/net/tcp6"] as const;

/** Matches the first line of a table, which the kernel writes even if there are no sockets. */
const tableHead = /^ *sl +local_address +rem\w* +st +tx_queue +rx_queue +tr +tm->when +retrnsmt /;

/**
 * Returns how many times the kernel has retransmitted the oldest data of each socket, by the socket's key. For an idle
 * connection, the number is that of the unanswered keepalive probes plus one. The kernel sends one probe a second, so
 * three unanswered probes show as long a silence as four retransmissions (3 s). For a single unanswered probe, the
 * number is 0, because the answer may still be on its way.
 *
 * Returns undefined if the numbers are unknown: a table cannot be read or has another format, or none of the tables
 * exists. A single missing table has no sockets: without IPv6, the kernel has no tcp6.
 */
export async function readRetransmissions(
  tables: readonly string[] = files,
): Promise<ReadonlyMap<string, number> | undefined> {
  const texts = await Promise.all(tables.map((file) => readTable(file)));
  const known = texts.filter((text) => text !== undefined);
  if (known.length === 0 || !known.every((text) => tableHead.test(text))) return undefined;
  return new Map(known.flatMap((text) => retransmissionsIn(text)));
}

/** Returns a key for a socket. Both ports and four bytes of the peer's address distinguish all sockets of the proxy. */
export function keyOf({ localPort = 0, remotePort = 0, remoteAddress = "" }: Endpoints): string {
  return `${localPort}-${remotePort}-${lastBytes(remoteAddress)}`;
}

/**
 * Parses lines "sl local remote state tx:rx timer:when retransmits uid probes …". All numbers are hexadecimal, except
 * uid and probes. Reads the states ESTABLISHED, and FIN_WAIT1, CLOSE_WAIT, LAST_ACK and CLOSING: in these, one side has
 * closed the connection, but there may be unacknowledged data.
 */
export function retransmissionsIn(text: string): [string, number][] {
  const line =
    /^ *\d+: [\dA-F]+:([\dA-F]{4}) ([\dA-F]+):([\dA-F]{4}) 0[1489B] \S+ \S+ ([\dA-F]{8}) +\d+ +(\d+) /gm;
  return [...text.matchAll(line)].flatMap((match): [string, number][] => {
    const [, local = "", address = "", remote = "", count = "", probes = "0"] = match;
    const inVain = Number(probes) < 2 ? 0 : Number(probes) + 1;
    const retransmits = Math.max(Number.parseInt(count, 16), inVain);
    if (retransmits === 0) return [];
    const [localPort, remotePort] = [Number.parseInt(local, 16), Number.parseInt(remote, 16)];
    return [[`${localPort}-${remotePort}-${swapped(address.slice(-8))}`, retransmits]];
  });
}

/** Reverses the bytes of a 32-bit word: the kernel prints it little-endian on all platforms of Node. */
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

/** Returns the table's text; "": it cannot be read; undefined: there is no such file. */
async function readTable(file: string): Promise<string | undefined> {
  try {
    await using handle = await open(file);
    return await readFrom(handle);
  } catch (reason) {
    const isMissing = reason instanceof Error && "code" in reason && reason.code === "ENOENT";
    return isMissing ? undefined : "";
  }
}

async function readFrom(handle: FileHandle): Promise<string> {
  const bytes = Buffer.allocUnsafe(healthLimits.socketTableBytes);
  let length = 0;
  while (length < bytes.length) {
    // Reads in a loop, because the kernel returns at most one page for each read.
    const { bytesRead } = await handle.read(bytes, length, bytes.length - length);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return bytes.toString("latin1", 0, length);
}
