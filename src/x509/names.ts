/** Decodes a certificate's name as Go's crypto/x509 does. */
import { type Element, none, nth, oidOf, partsOf, tags } from "./der.ts";

/** One attribute of a name. `type`: its object identifier in hexadecimal. */
export type Attribute = { readonly type: string; readonly text: string };

/** Returns the attributes of a name in their order; undefined if Go refuses the name. */
export function attributesOf(name: Element): readonly Attribute[] | undefined {
  const attributes: Attribute[] = [];
  for (const relative of partsOf(name) ?? [none]) {
    for (const pair of partsOf(relative, tags.set) ?? [none]) {
      const parts = partsOf(pair);
      const type = oidOf(nth(parts, 0));
      const text = textOf(nth(parts, 1));
      if (type === "" || text === undefined) return undefined;
      attributes.push({ type, text });
    }
  }
  return attributes;
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Go also permits "*" and "&" in a PrintableString, which X.680 §41.4 does not. */
const printable = /^[a-zA-Z0-9'()+,\-./ :=?*&]*$/;

/** Code points that a BMPString may not contain: surrogates and noncharacters. */
const notInBmp = /[\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]/;

/** Returns the text of a string of one of six types; undefined if Go refuses it. */
function textOf({ tag, value }: Element): string | undefined {
  const text = value.toString("latin1");
  if (tag === 0x0c) return decoded(value); // UTF8String
  if (tag === 0x12) return /^[0-9 ]*$/.test(text) ? text : undefined; // NumericString
  if (tag === 0x13) return printable.test(text) ? text : undefined; // PrintableString
  if (tag === 0x14) return text; // T61String, which Go and most others read as Latin-1
  if (tag === 0x16) return isAscii(value) ? text : undefined; // IA5String
  return tag === 0x1e ? twoByteText(value) : undefined; // BMPString
}

/** True if the bytes are an IA5String. */
export function isAscii(bytes: Buffer): boolean {
  return bytes.every((byte) => byte < 0x80);
}

function decoded(bytes: Buffer): string | undefined {
  try {
    return utf8.decode(bytes);
  } catch {
    return undefined; // not UTF-8
  }
}

/** Decodes a BMPString, without the NUL at its end that some programs write. */
function twoByteText(bytes: Buffer): string | undefined {
  if (bytes.length % 2 !== 0) return undefined;
  const text = Buffer.from(bytes).swap16().toString("utf16le").replace(/\0$/, "");
  return notInBmp.test(text) ? undefined : text;
}
