/**
 * Writes certificates with node:crypto alone, also those that no CA should issue: every key type, string type,
 * extension and signature algorithm.
 */
import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { encode } from "../../src/x509/der.ts";

export type Keys = { readonly publicKey: KeyObject; readonly privateKey: KeyObject };

const made = new Map<string, Keys>();

/** Returns a key pair. The same `name` gives the same pair within a process, because RSA keys take long. */
export function keysFor(type: string, name = ""): Keys {
  const known = made.get(`${type} ${name}`);
  if (known !== undefined) return known;
  const fresh = makeKeys(type);
  made.set(`${type} ${name}`, fresh);
  return fresh;
}

function makeKeys(type: string): Keys {
  const [, family = "", size = ""] = /^(rsa-pss|rsa)-(\d+)$/.exec(type) ?? [];
  if (family === "rsa") return generateKeyPairSync("rsa", { modulusLength: Number(size) });
  if (family === "rsa-pss") return generateKeyPairSync("rsa-pss", { modulusLength: Number(size) });
  if (type === "ed25519") return generateKeyPairSync("ed25519");
  if (type === "ed448") return generateKeyPairSync("ed448");
  return generateKeyPairSync("ec", { namedCurve: type });
}

/** The tags of string types. */
export const strings = {
  utf8: 0x0c,
  numeric: 0x12,
  printable: 0x13,
  t61: 0x14,
  ia5: 0x16,
  universal: 0x1c,
  bmp: 0x1e,
} as const;

const attributeTypes = {
  CN: "550403",
  O: "55040a",
  OU: "55040b",
  UID: "2b0601040183c25302",
} as const;

export type NamePart = readonly [
  type: keyof typeof attributeTypes,
  value: string | Buffer,
  string?: keyof typeof strings,
];

export const oid = (hex: string): Buffer => encode(0x06, Buffer.from(hex, "hex"));

/** Encodes a name. A text is encoded as the string type requires; bytes are written as they are. */
export function nameOf(...parts: readonly NamePart[]): Buffer {
  return encode(
    0x30,
    ...parts.map(([type, value, string = "utf8"]) => {
      const bytes = typeof value === "string" ? encodedAs(string, value) : value;
      return encode(0x31, encode(0x30, oid(attributeTypes[type]), encode(strings[string], bytes)));
    }),
  );
}

function encodedAs(string: keyof typeof strings, text: string): Buffer {
  if (string === "bmp") return Buffer.from(text, "utf16le").swap16();
  return Buffer.from(text, string === "utf8" ? "utf8" : "latin1");
}

const yes = encode(0x01, Buffer.of(0xff));

export function extension(type: string, value: Buffer, critical = false): Buffer {
  return encode(0x30, oid(type), ...(critical ? [yes] : []), encode(0x04, value));
}

/** `bits`: the names of key usages by their position, such as [0] for digitalSignature and [5] for keyCertSign. */
export function keyUsage(bits: readonly number[], critical = true): Buffer {
  const byte = bits.reduce((sum, bit) => sum | (0x80 >> bit), 0);
  const unused = byte === 0 ? 0 : Math.log2(byte & -byte);
  return extension("551d0f", encode(0x03, byte === 0 ? Buffer.of(0) : Buffer.of(unused, byte)), critical);
}

export const purposeOids = {
  server: "2b06010505070301",
  client: "2b06010505070302",
  code: "2b06010505070303",
  any: "551d2500",
  smartcard: "2b060104018237140202",
} as const;

export function extendedUsage(purposes: readonly (keyof typeof purposeOids)[], critical = false): Buffer {
  return extension("551d25", encode(0x30, ...purposes.map((one) => oid(purposeOids[one]))), critical);
}

export function basicConstraints(isCa: boolean, maxPath?: number): Buffer {
  const path = maxPath === undefined ? [] : [encode(0x02, Buffer.of(maxPath))];
  return extension("551d13", encode(0x30, ...(isCa ? [yes] : []), ...path), true);
}

/** Each name is `[tag, value]`: 0x81 e-mail, 0x82 DNS, 0x86 URI, 0x87 IP address. */
export function altNames(names: readonly (readonly [number, string | Buffer])[], critical = false): Buffer {
  const encoded = names.map(([tag, value]) =>
    encode(tag, typeof value === "string" ? Buffer.from(value, "latin1") : value),
  );
  return extension("551d11", encode(0x30, ...encoded), critical);
}

export const dnsNames = (...names: readonly string[]): Buffer =>
  altNames(names.map((name) => [0x82, name] as const));

const hashes = { sha1: 1, sha256: 11, sha384: 12, sha512: 13, md5: 4 } as const;
const hashOids: Readonly<Record<string, string>> = {
  sha1: "2b0e03021a",
  sha256: "608648016503040201",
  sha384: "608648016503040202",
  sha512: "608648016503040203",
};

type Signing = { readonly algorithm: Buffer; readonly sign: (data: Buffer, key: KeyObject) => Buffer };

/** `algorithm`: "ecdsa-sha256", "rsa-md5", "pss-sha256-32" (the salt's length), "ed25519" and so on. */
function signingOf(algorithm: string): Signing {
  const [family = "", hash = "sha256", salt = "32"] = algorithm.split("-");
  if (family === "ed25519" || family === "ed448")
    return {
      algorithm: encode(0x30, oid(family === "ed448" ? "2b6571" : "2b6570")),
      sign: (data, key) => sign(undefined, data, key),
    };
  if (family === "pss") {
    const hashed = encode(0x30, oid(hashOids[hash] ?? ""), encode(0x05));
    const mask = encode(0x30, oid("2a864886f70d010108"), hashed);
    const parts = [
      encode(0xa0, hashed),
      encode(0xa1, mask),
      encode(0xa2, encode(0x02, Buffer.of(Number(salt)))),
    ];
    return {
      algorithm: encode(0x30, oid("2a864886f70d01010a"), encode(0x30, ...parts)),
      sign: (data, key) => sign(hash, data, { key, padding: 6, saltLength: Number(salt) }),
    };
  }
  const number = hashes[hash as keyof typeof hashes];
  const ec = hash === "sha1" ? "2a8648ce3d0401" : `2a8648ce3d04030${number - 9}`;
  const rsa = `2a864886f70d0101${(hash === "sha1" ? 5 : number).toString(16).padStart(2, "0")}`;
  return {
    algorithm: family === "ecdsa" ? encode(0x30, oid(ec)) : encode(0x30, oid(rsa), encode(0x05)),
    sign: (data, key) => sign(hash, data, key),
  };
}

export type Issuer = { readonly name: Buffer; readonly keys: Keys };

export type Wanted = {
  readonly name: Buffer;
  readonly keys: Keys;
  /** Undefined: the certificate signs itself. */
  readonly issuer?: Issuer | undefined;
  /** The issuer's name, if it differs from that of `issuer`. */
  readonly issuerName?: Buffer;
  readonly extensions?: readonly Buffer[];
  readonly version?: 1 | 2 | 3;
  readonly serial?: Buffer;
  /** Offsets from now in hours. */
  readonly from?: number;
  readonly to?: number;
  readonly signature?: string;
  /** The algorithm that the signed part states, if it differs. */
  readonly statedSignature?: string;
  readonly times?: readonly [Buffer, Buffer];
};

const usualSignature = (key: KeyObject): string => {
  const { asymmetricKeyType: type = "" } = key;
  if (type === "ec") return "ecdsa-sha256";
  if (type === "rsa") return "rsa-sha256";
  return type === "rsa-pss" ? "pss-sha256-32" : type;
};

/** Returns a time as UTCTime. */
export function utcTime(hours: number): Buffer {
  const text = new Date(Date.now() + hours * 3_600_000).toISOString().replace(/[-:T]|\.\d+/g, "");
  return encode(0x17, Buffer.from(text.slice(2)));
}

export function writeCertificate(wanted: Wanted): string {
  const { name, keys, issuer = { name, keys }, extensions = [], version = 3 } = wanted;
  const { serial = Buffer.of(0x5a, 1), from = -1, to = 24 * 365 } = wanted;
  const signing = signingOf(wanted.signature ?? usualSignature(issuer.keys.privateKey));
  const stated = wanted.statedSignature === undefined ? signing : signingOf(wanted.statedSignature);
  const list = extensions.length === 0 ? [] : [encode(0xa3, encode(0x30, ...extensions))];
  const signed = encode(
    0x30,
    ...(version === 1 ? [] : [encode(0xa0, encode(0x02, Buffer.of(version - 1)))]),
    encode(0x02, serial),
    stated.algorithm,
    wanted.issuerName ?? issuer.name,
    encode(0x30, ...(wanted.times ?? [utcTime(from), utcTime(to)])),
    name,
    keys.publicKey.export({ type: "spki", format: "der" }),
    ...list,
  );
  const bits = Buffer.concat([Buffer.of(0), signing.sign(signed, issuer.keys.privateKey)]);
  return pemOf("CERTIFICATE", encode(0x30, signed, signing.algorithm, encode(0x03, bits)));
}

function pemOf(type: string, der: Buffer): string {
  const lines = der.toString("base64").match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${type}-----\n${lines.join("\n")}\n-----END ${type}-----\n`;
}

export function privatePem({ privateKey }: Keys): string {
  return privateKey.export({ type: "pkcs8", format: "pem" }).toString();
}
