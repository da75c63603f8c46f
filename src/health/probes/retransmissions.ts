/**
 * Which sockets of this network namespace wait for an acknowledgement that does not come? Linux tells in /proc/net/tcp
 * and tcp6; Node tells nothing of it. Where they cannot be read nobody is known to wait, and keepalive has to do.
 */
import { type FileHandle, open } from "node:fs/promises";
import { limits } from "../../base/limits.ts";

/** A socket, as both Node and Linux can name it. */
export type Endpoints = {
  readonly localPort?: number | undefined;
  readonly remotePort?: number | undefined;
  readonly remoteAddress?: string | undefined;
};

const files = ["/proc/net/tcp", "/proc/net/tcp6"] as const;

/**
 * By the socket's key, how often the kernel has sent the same again, or has asked a quiet peer in vain (keepalive) and one
 * more, for it waits a second before it asks again; of those that it does so for.
 */
export async function readRetransmissions(
  tables: readonly string[] = files,
): Promise<ReadonlyMap<string, number>> {
  const texts = await Promise.all(tables.map((file) => readSome(file)));
  return new Map(texts.flatMap((text) => retransmissionsIn(text)));
}

/** Ports and the last four octets of the peer's address: enough to tell one's own sockets apart. */
export function keyOf({ localPort = 0, remotePort = 0, remoteAddress = "" }: Endpoints): string {
  return `${localPort}-${remotePort}-${lastOctets(remoteAddress)}`;
}

/** Lines of /proc/net/tcp: "sl local remote state tx:rx timer:when retransmits uid probes ...", the last two decimal. */
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

/** The kernel writes each 32 bits as the machine holds them: least significant octet first on all that Node runs on. */
function swapped(word: string): string {
  return (word.match(/../g) ?? []).toReversed().join("").toLowerCase();
}

function lastOctets(address: string): string {
  const v4 = /(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(address)?.slice(1);
  if (v4 !== undefined) return v4.map((octet) => Number(octet).toString(16).padStart(2, "0")).join("");
  const [unscoped = ""] = address.split("%", 1);
  const [high = "", low = ""] = unscoped.split(":").slice(-2);
  return `${high.padStart(4, "0")}${low.padStart(4, "0")}`.toLowerCase();
}

async function readSome(file: string): Promise<string> {
  try {
    await using handle = await open(file);
    return await readFrom(handle);
  } catch {
    // Another system, or no leave to read it.
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
