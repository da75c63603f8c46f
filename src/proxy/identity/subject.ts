/**
 * Reads the subject of a certificate from its DER encoding by the rules of Go's crypto/x509, as the apiserver does:
 * every organisation is a group, and the last common name is the user name. Node's text form of a subject is not used:
 * Node joins and escapes the parts, so two different subjects could have the same text.
 */
import { Failure } from "../../base/failure.ts";

export type Subject = {
  /** The last common name; "" if the subject has none. */
  readonly commonName: string;
  readonly organizations: readonly string[];
  /**
   * Values of Kubernetes' certificate attribute for the user's uid (k8s.io/apiserver, AllowParsingUserUIDFromCertAuth).
   */
  readonly uids: readonly string[];
};

type Element = { readonly tag: number; readonly start: number; readonly end: number };

const sequence = 0x30;
const set = 0x31;
const objectIdentifier = 0x06;
/** The DER tag of the field `version`, which certificates of version 1 do not have (RFC 5280 §4.1). */
const version = 0xa0;

/** The attributes to read, by the DER encoding of their object identifiers: 2.5.4.3, 2.5.4.10, 1.3.6.1.4.1.57683.2. */
const attributes = new Map<string, "commonName" | "organization" | "uid">([
  ["550403", "commonName"],
  ["55040a", "organization"],
  ["2b0601040183c25302", "uid"],
]);

/** Returns a certificate's subject. Returns a Failure if parsers may decode a name in different ways. */
export function subjectOf(der: Uint8Array): Subject | Failure {
  const found = { commonName: "", organizations: [] as string[], uids: [] as string[] };
  for (const { kind, value } of namesOf(der)) {
    const text = textOf(der, value);
    if (text === undefined)
      return new Failure("client-certificate", "client", `The certificate's ${kind} cannot be read as text`);
    if (kind === "commonName") found.commonName = text;
    else if (kind === "organization") found.organizations.push(text);
    else found.uids.push(text);
  }
  return found;
}

type Name = { readonly kind: "commonName" | "organization" | "uid"; readonly value: Element };

function namesOf(der: Uint8Array): Name[] {
  const [certificate] = elementsOf(der, { tag: sequence, start: 0, end: der.length });
  const [signed] = certificate === undefined ? [] : elementsOf(der, certificate);
  if (signed === undefined) return [];
  const parts = elementsOf(der, signed).filter(({ tag }) => tag !== version);
  // The fifth field of a TBSCertificate, after serialNumber, signature, issuer and validity (RFC 5280 §4.1).
  const subject = parts[4];
  if (subject?.tag !== sequence) return [];
  return elementsOf(der, subject)
    .filter(({ tag }) => tag === set)
    .flatMap((relative) => elementsOf(der, relative))
    .flatMap((attribute) => nameOf(der, attribute) ?? []);
}

function nameOf(der: Uint8Array, attribute: Element): Name | undefined {
  const [type, value] = elementsOf(der, attribute);
  if (type?.tag !== objectIdentifier || value === undefined) return undefined;
  const kind = attributes.get(Buffer.from(der.subarray(type.start, type.end)).toString("hex"));
  return kind && { kind, value };
}

/** Returns the elements inside an element; an empty list if any of them is cut off or too long. */
function elementsOf(der: Uint8Array, { start, end }: Element): Element[] {
  const elements: Element[] = [];
  for (let at = start; at < end; ) {
    const element = elementAt(der, at);
    if (element === undefined || element.end > end) return [];
    elements.push(element);
    at = element.end;
  }
  return elements;
}

/**
 * Returns the element at a position; undefined: it is malformed or cut off. In DER, a length below 128 is one byte.
 * Otherwise the first byte states how many bytes of length follow (X.690 §8.1.3, §10.1).
 */
function elementAt(der: Uint8Array, at: number): Element | undefined {
  const [tag, first] = [der[at], der[at + 1]];
  if (tag === undefined || first === undefined) return undefined;
  if (first < 0x80) return { tag, start: at + 2, end: at + 2 + first };
  const count = first - 0x80;
  if (count < 1 || count > 4 || at + 2 + count > der.length) return undefined;
  const length = der.subarray(at + 2, at + 2 + count).reduce((sum, byte) => sum * 256 + byte, 0);
  return { tag, start: at + 2 + count, end: at + 2 + count + length };
}

const utf8 = 0x0c;
/**
 * Tags of NumericString, PrintableString and IA5String. T61String and BMPString are refused, because parsers decode
 * them differently.
 */
const ascii = new Set([0x12, 0x13, 0x16]);
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function textOf(der: Uint8Array, { tag, start, end }: Element): string | undefined {
  const bytes = der.subarray(start, end);
  if (tag !== utf8 && !ascii.has(tag)) return undefined;
  if (tag !== utf8 && bytes.some((byte) => byte > 0x7e)) return undefined;
  try {
    return decoder.decode(bytes);
  } catch {
    return undefined; // not UTF-8
  }
}
