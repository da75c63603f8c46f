/**
 * Reads the apiservers' addresses from the objects that the apiservers themselves write. The number of items is checked
 * before any item is read. An object with a field of a wrong type is refused whole.
 */
import { type Address, isIpAddress, isUnicast } from "../../base/address.ts";
import { wallOf } from "../../base/clock.ts";
import { isRecord, type JsonRecord } from "../../base/json.ts";
import { limits } from "../../base/limits.ts";

type ZonedAddress = Address & { readonly zone?: string };

/** The EndpointSlice in "default" that each apiserver writes. Other clients may create slices beside it. */
export const ownSlice = "kubernetes";

/**
 * Returns the ready addresses of default/kubernetes. The API defines a missing "ready" as true. @throws {Error} naming
 * the field that is wrong
 */
export function addressesInSlice(slice: unknown): readonly ZonedAddress[] {
  const { endpoints, ports, metadata } = recordIn(slice, "the response");
  if (recordIn(metadata, "metadata")["name"] !== ownSlice)
    throw new Error(`the response is not the EndpointSlice ${ownSlice}`);
  const all = listIn(endpoints, "endpoints").map((one, at) => recordIn(one, `endpoints[${at}]`));
  const hosts = all.map(({ addresses }, at) => listIn(addresses, `endpoints[${at}].addresses`));
  const count = hosts.reduce((sum, { length }) => sum + length, 0);
  if (count > limits.discoveredBackends) throw tooMany(`${count} addresses`);
  if (count === 0) return [];
  const port = portIn(listIn(ports, "ports").map((one, at) => recordIn(one, `ports[${at}]`)));
  return all.flatMap(({ conditions, zone }, at) => {
    const zoned = typeof zone === "string" ? { zone } : {};
    const found = (hosts[at] ?? []).map((host, nth) => {
      if (typeof host === "string" && isIpAddress(host)) return { host, port, ...zoned };
      throw new Error(`endpoints[${at}].addresses[${nth}] is not an IP address`);
    });
    const { ready } = recordIn(conditions, `endpoints[${at}].conditions`);
    if (typeof ready === "boolean" || ready === undefined || ready === null)
      return ready === false ? [] : found;
    throw new Error(`endpoints[${at}].conditions.ready is not a boolean`);
  });
}

function portIn(ports: readonly JsonRecord[]): number {
  const { port } = ports.find(({ name }) => name === "https") ?? ports[0] ?? {};
  if (typeof port === "number" && Number.isInteger(port) && port > 0 && port < 65_536) return port;
  throw new Error("the port is not a number from 1 to 65535");
}

/** The annotation in which each apiserver publishes its peer address. An apiserver renews its own Lease every 10 s. */
export const peerAddress = "kubernetes.io/peer-advertise-address";

/** The name of an apiserver's identity Lease: 16 bytes of a hash of the host's name, in base32. */
const leaseName = /^apiserver-[a-z2-7]{26}$/;

/** Returns the items of one page of a list, and the text that asks for the next page; "": there is none. */
export function pageIn(list: unknown): { readonly items: readonly unknown[]; readonly next: string } {
  const { items, metadata } = recordIn(list, "the response");
  if (!Array.isArray(items)) throw new Error("the response is not a list");
  const next = recordIn(metadata, "metadata")["continue"];
  return { items, next: typeof next === "string" ? next : "" };
}

/**
 * Returns the addresses in the apiservers' identity Leases (namespace kube-system). Skips Leases of other names, and
 * Leases without a usable address, because any client that may create Leases could otherwise stop discovery with one.
 * Skips Leases that were not renewed in time: their apiservers are gone, and Kubernetes deletes such Leases an hour
 * later. Of too many Leases, takes the oldest: a client that may only create Leases cannot make one that is older than
 * those of the apiservers. `now`: milliseconds since 1970. @throws {Error} naming the field that is wrong
 */
export function addressesInLeases(list: unknown, now: number): readonly Address[] {
  const { items } = recordIn(list, "the response");
  if (!Array.isArray(items)) throw new Error("the response is not a list");
  const found = items.flatMap((item: unknown, at) => {
    const lease = recordIn(item, `items[${at}]`);
    const { name, annotations, creationTimestamp } = recordIn(lease["metadata"], `items[${at}].metadata`);
    const text = recordIn(annotations, `items[${at}].metadata.annotations`)[peerAddress];
    const spec = recordIn(lease["spec"], `items[${at}].spec`);
    if (typeof name !== "string" || !leaseName.test(name) || hasRunOut(spec, now)) return [];
    const createdAt = wallOf(typeof creationTimestamp === "string" ? creationTimestamp : "") || Infinity;
    return typeof text === "string" ? addressIn(text).map((address) => ({ createdAt, address })) : [];
  });
  const oldest = found.toSorted((one, other) => (one.createdAt < other.createdAt ? -1 : 1));
  return oldest.slice(0, limits.discoveredBackends).map(({ address }) => address);
}

function hasRunOut({ renewTime, leaseDurationSeconds: seconds }: JsonRecord, now: number): boolean {
  const renewedAt = wallOf(typeof renewTime === "string" ? renewTime : "");
  if (Number.isNaN(renewedAt) || typeof seconds !== "number" || seconds <= 0) return false;
  return renewedAt + seconds * 1000 < now;
}

function addressIn(text: string): Address[] {
  const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(text) ?? [];
  const [host, port] = [bracketed ?? plain ?? "", Number(digits)];
  return isUnicast(host) && port > 0 && port < 65_536 ? [{ host, port }] : [];
}

/** Returns the object; an empty one if the field is missing or null, as encoding/json reads it. */
function recordIn(value: unknown, at: string): JsonRecord {
  if (isRecord(value)) return value;
  if (value === undefined || value === null) return {};
  throw new Error(`${at} is not an object`);
}

function listIn(value: unknown, at: string): readonly unknown[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw new Error(`${at} is not a list`);
  if (value.length > limits.discoveredBackends) throw tooMany(at);
  return value;
}

function tooMany(what: string): Error {
  return new Error(`${what}: more than ${limits.discoveredBackends} apiservers`);
}
