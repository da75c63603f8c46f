/**
 * Validates discovered backends, because no source is trusted. An address must be that of a single host, so it cannot
 * be a multicast address, for example. Does no I/O.
 */
import { isHost, isIpAddress, isLoopback, isUnicast, parseBackendUrl, textOf } from "../../base/address.ts";
import { Failure } from "../../base/failure.ts";
import { isRecord, type JsonRecord } from "../../base/json.ts";
import { limits } from "../../base/limits.ts";
import { isZone } from "../config/cluster.ts";
import { isProblems, lineOf, quote } from "../config/problem.ts";
import { readYaml } from "../config/yaml-document.ts";

/**
 * A discovered backend. Its name is its address, such as "10.0.0.11:6443", unless a discovery file names the backend.
 */
export type Discovered = {
  readonly name: string;
  readonly host: string;
  readonly port: number;
  readonly isEncrypted: boolean;
  /** Relative weight in load balancing; default: 1. Only a discovery file states weights. */
  readonly weight?: number;
  /** The backend's zone; undefined: the source does not state it. */
  readonly zone?: string;
};

export function foundAt(host: string, port: number, zone = ""): Discovered {
  const found = { name: textOf({ host, port }), host, port, isEncrypted: true };
  return isZone(zone) ? { ...found, zone } : found;
}

/** Returns each backend once, in a stable order; a Failure if any backend is unusable. */
export function checkFound(found: readonly Discovered[]): readonly Discovered[] | Failure {
  const wrong = found.find((one) => !isUsable(one));
  if (wrong !== undefined)
    return refused(`${quote(`${wrong.host}:${wrong.port}`)} is not a backend's address`);
  const byPlace = new Map(found.map((one) => [`${one.host} ${one.port}`, one]));
  const byName = new Map(Array.from(byPlace.values(), (one) => [one.name, one]));
  if (byName.size < byPlace.size) return refused("two backends with one name");
  // An empty result is rejected: no cluster has zero apiservers, so the source must be broken.
  if (byName.size === 0) return refused("no backends at all");
  if (byName.size > limits.discoveredBackends)
    return refused(`${byName.size} backends, more than ${limits.discoveredBackends}`);
  return Array.from(byName.values()).toSorted((one, other) => (one.name < other.name ? -1 : 1));
}

function refused(what: string): Failure {
  return new Failure("bad-file", "proxy", `Discovered ${what}`);
}

function isUsable({ host, port, isEncrypted }: Discovered): boolean {
  if (!Number.isInteger(port) || port < 1 || port > 65_535) return false;
  // Allows a host name, because an operator may write one into a discovery file. All other sources return IP addresses.
  return (isIpAddress(host) ? isUnicast(host) : isHost(host)) && (isEncrypted || isLoopback(host));
}

/** Parses a list of `{name, url}`, as in a config. `file`: the file's name for messages. */
export function foundInFile(text: string, file: string): readonly Discovered[] | Failure {
  const document = readYaml(text, file);
  if (isProblems(document)) return new Failure("bad-file", "proxy", document.map(lineOf).join("; "));
  const { value } = document;
  if (!Array.isArray(value)) return new Failure("bad-file", "proxy", `${file} is not a list of {name, url}`);
  const found: Discovered[] = [];
  for (const [index, entry] of value.entries()) {
    const one = foundInEntry(entry);
    const at = document.positionOf(`/${index}`);
    if (one === undefined)
      return new Failure("bad-file", "proxy", `${at}: ${quote(entry)} is not {name, url}`);
    found.push(one);
  }
  return found;
}

function foundInEntry(entry: unknown): Discovered | undefined {
  const fields: JsonRecord = isRecord(entry) ? entry : {};
  const { name, url, weight, zone, ...rest } = fields;
  if (typeof name !== "string" || typeof url !== "string" || Object.keys(rest).length > 0) return undefined;
  const address = parseBackendUrl(url);
  // A name must follow the rule for names in the config, because it appears in metrics and logs.
  const isName = /^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$/.test(name);
  const traits = traitsIn(weight, zone);
  return address !== undefined && address.path === undefined && isName && traits !== undefined
    ? { name, ...address, ...traits }
    : undefined;
}

function traitsIn(weight: unknown, zone: unknown): Pick<Discovered, "weight" | "zone"> | undefined {
  const isWeight = Number.isInteger(weight) && Number(weight) >= 1 && Number(weight) <= 256;
  if (weight !== undefined && !isWeight) return undefined;
  const weighted = weight === undefined ? {} : { weight: Number(weight) };
  if (zone === undefined) return weighted;
  return typeof zone === "string" && isZone(zone) ? { ...weighted, zone } : undefined;
}
