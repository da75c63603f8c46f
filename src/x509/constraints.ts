/** Compares alternative names with a server's name and the name constraints of a CA (RFC 5280 §4.2.1.10), as Go does. */
import { octetsOf } from "../base/address.ts";
import { type Element, none, nth, partsOf } from "./der.ts";

export type NameConstraints = {
  readonly permitted: readonly Element[];
  readonly excluded: readonly Element[];
};

/** The tags of the names that Go reads in subjectAltName and nameConstraints. */
export const nameTags = { email: 0x81, dns: 0x82, uri: 0x86, address: 0x87 } as const;

/** True if these alternative names contain a DNS name or IP address. `*` stands only for a whole first label. */
export function hasName(names: readonly Element[], name: string): boolean {
  const octets = octetsOf(name);
  const host = name.toLowerCase().replace(/\.$/, "");
  const texts = [host, host.replace(/^[^.]+(?=\.)/, "*")];
  if (octets === undefined)
    return names.some((one) => one.tag === nameTags.dns && texts.includes(textOf(one)));
  return names.some(({ tag, value }) => tag === nameTags.address && value.equals(Buffer.from(octets)));
}

/** Returns undefined if the extension is malformed. */
export function constraintsIn(value: Element): NameConstraints | undefined {
  const list = partsOf(value);
  // A list that is malformed inside has one name of no known type.
  const subtrees = (tag: number): Element[] => {
    const found = list?.find((one) => one.tag === tag);
    return found === undefined ? [] : (partsOf(found, tag) ?? [none]).map((one) => nth(partsOf(one), 0));
  };
  return list && { permitted: subtrees(0xa0), excluded: subtrees(0xa1) };
}

/** True if a CA with these constraints may issue a certificate with this name. */
export function isPermitted(name: Element, { permitted, excluded }: NameConstraints): boolean {
  // E-mail addresses and URIs have rules of their own. Certificates with such names below such a CA are rare.
  if (name.tag === nameTags.email || name.tag === nameTags.uri) return false;
  if (name.tag !== nameTags.dns && name.tag !== nameTags.address) return true;
  if (name.tag === nameTags.dns && textOf(name).endsWith(".")) return false;
  const own = permitted.filter(({ tag }) => tag === name.tag);
  if (own.length > 0 && !own.some((base) => isWithin(name, base))) return false;
  return !excluded.some(
    (base) => base.tag === name.tag && (isWithin(name, base) || isWildcardFor(name, base)),
  );
}

function isWithin(name: Element, base: Element): boolean {
  if (name.tag === nameTags.address) return isInRange(name.value, base.value);
  const [text, domain] = [textOf(name), textOf(base)];
  if (domain === "" || text === domain) return true;
  return text.endsWith(domain.startsWith(".") ? domain : `.${domain}`);
}

/** True if a wildcard stands for a name that is excluded. */
function isWildcardFor(name: Element, base: Element): boolean {
  const [text, domain] = [textOf(name), textOf(base)];
  return text.startsWith("*.") && domain.includes(".") && text.slice(1) === domain.slice(domain.indexOf("."));
}

function textOf({ value }: Element): string {
  return value.toString("latin1").toLowerCase();
}

/** `range`: an address and a mask of the same length. */
function isInRange(address: Buffer, range: Buffer): boolean {
  const { length } = address;
  if (range.length !== 2 * length) return false;
  return address.every((byte, at) => ((byte ^ range.readUInt8(at)) & range.readUInt8(length + at)) === 0);
}
