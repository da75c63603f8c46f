/**
 * Client certificates of many kinds, with what kube-apiserver 1.36 makes of each: key type, usages, string types of the
 * name, chain, dates and malformed parts. test/real/certificates.test.ts compares the verdicts with a real apiserver.
 */
import { encode } from "../../src/x509/der.ts";
import {
  anchored,
  authority,
  between,
  bigRoot,
  caUse,
  clientCas,
  constrained,
  deep,
  edRoot,
  excluding,
  expiredRoot,
  lower,
  middle,
  newRoot,
  noCaRoot,
  noSignRoot,
  oldRoot,
  printable,
  root,
  rsaRoot,
  serverRoot,
  sha1Root,
  shortMiddle,
  shortRoot,
  strange,
  strangeKubernetes,
  stranger,
  thirdRoot,
  underShort,
  upper,
  versionOneRoot,
  weakRoot,
} from "./client-authorities.ts";
import {
  altNames,
  basicConstraints,
  dnsNames,
  extendedUsage,
  extension,
  keysFor,
  keyUsage,
  type NamePart,
  nameOf,
  oid,
  privatePem,
  utcTime,
  type Wanted,
  writeCertificate,
} from "./x509-writer.ts";

export type ClientRow = {
  readonly title: string;
  /** "user" or "user:group,group"; "none": the client is anonymous; "refused": 401, or no handshake. */
  readonly apiserver: string;
  /** What watchkeeper makes of it, if it differs (docs/certificates.md says why). */
  readonly proxy?: string;
  /** PEM: the client's certificate, then the others that the client presents. */
  readonly chain: string;
  readonly key: string;
};

const clientUse = [basicConstraints(false), keyUsage([0]), extendedUsage(["client"])];

const rows: ClientRow[] = [];

type RowOptions = Partial<Wanted> & {
  readonly keyType?: string;
  readonly proxy?: string;
  /** The other certificates that the client presents. */
  readonly others?: readonly { readonly pem: string }[];
};

function row(title: string, apiserver: string, options: RowOptions = {}): void {
  const { keyType = "P-256", others = [], proxy, ...wanted } = options;
  const keys = keysFor(keyType, "client");
  const name = nameOf(["O", "devs"], ["CN", "alice"]);
  const certificate = writeCertificate({ name, keys, issuer: root, extensions: clientUse, ...wanted });
  const chain = [certificate, ...others.map(({ pem }) => pem)].join("");
  rows.push({ title, apiserver, chain, key: privatePem(keys), ...(proxy === undefined ? {} : { proxy }) });
}

const alice = "alice:devs";
const refused = "refused";
const anonymous = "none";

for (const type of ["P-256", "P-384", "P-521", "ed25519", "rsa-2048", "rsa-3072"])
  row(`key ${type}`, alice, { keyType: type });
row("key RSA of 1024 bits", alice, { keyType: "rsa-1024" });
// A client does not present these three to an apiserver, which announces no such signatures; OpenSSL announces them.
row("key RSA-PSS", anonymous, { keyType: "rsa-pss-2048", proxy: refused });
row("key Ed448", anonymous, { keyType: "ed448", proxy: refused });

const usages: readonly (readonly [string, readonly number[]])[] = [
  ["digitalSignature", [0]],
  ["keyEncipherment", [2]],
  ["keyEncipherment and dataEncipherment", [2, 3]],
  ["keyAgreement", [4]],
  ["nonRepudiation", [1]],
  ["keyCertSign", [5]],
  ["no bit at all", []],
];
for (const [title, bits] of usages)
  for (const isCritical of [true, false])
    row(`keyUsage ${title}${isCritical ? ", critical" : ""}`, alice, {
      extensions: [basicConstraints(false), keyUsage(bits, isCritical), extendedUsage(["client"])],
    });
row("no extensions at all", alice, { extensions: [] });

const purposes: readonly (readonly [...Parameters<typeof extendedUsage>[0], string])[] = [
  ["client", alice],
  ["server", refused],
  ["server", "client", alice],
  ["any", alice],
  ["server", "any", alice],
  ["code", refused],
  ["code", "client", alice],
  ["smartcard", refused],
  ["smartcard", "client", alice],
];
for (const entry of purposes) {
  const list = entry.slice(0, -1) as Parameters<typeof extendedUsage>[0];
  for (const isCritical of [true, false])
    row(`extendedKeyUsage ${list.join(", ")}${isCritical ? ", critical" : ""}`, String(entry.at(-1)), {
      extensions: [keyUsage([2]), extendedUsage(list, isCritical)],
    });
}
row("extendedKeyUsage of an empty list", alice, { extensions: [extension("551d25", encode(0x30))] });
row("extendedKeyUsage that is no list", refused, {
  extensions: [extension("551d25", oid("2b06010505070302"))],
});

const names: readonly (readonly [string, string, readonly NamePart[], string?])[] = [
  [
    "UTF8String",
    "Ärzte:b, c",
    [
      ["O", "b, c"],
      ["CN", "Ärzte"],
    ],
  ],
  [
    "PrintableString",
    "alice:a b",
    [
      ["O", "a b", "printable"],
      ["CN", "alice", "printable"],
    ],
  ],
  ["PrintableString with * and &", "a*b&c", [["CN", "a*b&c", "printable"]]],
  ["PrintableString with _", refused, [["CN", "a_b", "printable"]]],
  ["PrintableString with @", refused, [["CN", "a@b", "printable"]]],
  ["IA5String", "a@b", [["CN", "a@b", "ia5"]]],
  ["IA5String beyond ASCII", refused, [["CN", "\u00e9", "ia5"]]],
  ["T61String", "alice", [["CN", "alice", "t61"]]],
  ["T61String beyond ASCII", "é", [["CN", "é", "t61"]]],
  ["BMPString", "user€", [["CN", "user€", "bmp"]]],
  ["BMPString that ends with NUL", "user", [["CN", "user\0", "bmp"]]],
  ["BMPString with surrogates", refused, [["CN", "😀", "bmp"]]],
  ["BMPString of odd length", refused, [["CN", Buffer.of(0, 97, 0), "bmp"]]],
  [
    "BMPString as a group",
    "bob:grp",
    [
      ["O", "grp", "bmp"],
      ["CN", "bob"],
    ],
  ],
  ["NumericString", "12 3", [["CN", "12 3", "numeric"]]],
  ["NumericString with a letter", refused, [["CN", "12a", "numeric"]]],
  ["UniversalString", refused, [["CN", Buffer.of(0, 0, 0, 97), "universal"]]],
  ["UTF8String that is none", refused, [["CN", Buffer.of(0xc0, 0xaf)]]],
  [
    "an unreadable unit beside a good name",
    refused,
    [
      ["OU", Buffer.of(0xff)],
      ["CN", "alice"],
    ],
  ],
  [
    "two common names",
    "bob",
    [
      ["CN", "alice"],
      ["CN", "bob"],
    ],
  ],
  [
    "an empty second common name",
    refused,
    [
      ["CN", "alice"],
      ["CN", ""],
    ],
  ],
  ["no common name", refused, [["O", "devs"]]],
  [
    "an empty common name",
    refused,
    [
      ["CN", ""],
      ["O", "devs"],
    ],
  ],
  ["no name at all", refused, []],
  [
    "a uid",
    "alice",
    [
      ["CN", "alice"],
      ["UID", "42"],
    ],
  ],
  [
    "two uids",
    refused,
    [
      ["CN", "alice"],
      ["UID", "42"],
      ["UID", "43"],
    ],
  ],
  [
    "an empty uid",
    refused,
    [
      ["CN", "alice"],
      ["UID", ""],
    ],
  ],
  [
    "a colon",
    "system:node:a:system:nodes",
    [
      ["O", "system:nodes"],
      ["CN", "system:node:a"],
    ],
  ],
  ["a line break", "a\nb", [["CN", "a\nb"]], refused],
  ["blanks at both ends", " a ", [["CN", " a "]], refused],
  ["a comma and a quote", 'a,"b', [["CN", 'a,"b']]],
];
for (const [title, apiserver, parts, proxy] of names)
  row(`name with ${title}`, apiserver, {
    name: nameOf(...parts),
    ...(proxy === undefined ? {} : { proxy }),
  });

row("issuer RSA", alice, { issuer: rsaRoot });
row("issuer Ed25519", alice, { issuer: edRoot });
row("issuer P-384, SHA-384", alice, { issuer: bigRoot, signature: "ecdsa-sha384" });
row("issuer RSA of 1024 bits", alice, { issuer: weakRoot });
row("signature RSA-PSS", alice, { issuer: rsaRoot, signature: "pss-sha256-32" });
row("signature RSA-PSS with SHA-384", alice, { issuer: rsaRoot, signature: "pss-sha384-48" });
row("signature RSA-PSS with another salt length", refused, { issuer: rsaRoot, signature: "pss-sha256-20" });
row("signature with SHA-1", refused, { issuer: rsaRoot, signature: "rsa-sha1" });
row("signature with SHA-1 on P-256", refused, { signature: "ecdsa-sha1" });
row("signature with MD5", anonymous, { issuer: rsaRoot, signature: "rsa-md5", proxy: refused });
row("signature with SHA-512", alice, { issuer: rsaRoot, signature: "rsa-sha512" });
row("two signature algorithms", refused, { issuer: rsaRoot, statedSignature: "rsa-sha512" });
row("the first CA of three with one name", alice, { issuer: oldRoot, keyType: "rsa-2048" });
row("the second CA of three with one name", alice, { issuer: newRoot, keyType: "rsa-2048" });
row("the third CA of three with one name", alice, { issuer: thirdRoot, keyType: "rsa-2048" });
row("an unknown CA with a known name", refused, { issuer: strangeKubernetes });
row("an unknown CA with a known name, which is presented", refused, {
  issuer: strangeKubernetes,
  others: [strangeKubernetes],
});
row("a foreign CA of the same name is presented, too", alice, {
  issuer: newRoot,
  others: [strangeKubernetes],
});
row("an unknown CA", refused, { issuer: stranger });
row("signed by itself", refused, { issuer: undefined });
row("the CA's name without its capitals", refused, {
  issuer: upper,
  issuerName: nameOf(["CN", "upper case"]),
});
row("the CA's name as another string type", refused, {
  issuer: printable,
  issuerName: nameOf(["CN", "Printable"]),
});
row("an intermediate CA in the bundle, without its root", alice, { issuer: anchored });
row("an expired CA", refused, { issuer: expiredRoot });
row("a trusted certificate that is no CA", refused, { issuer: noCaRoot });
row("a CA of version 1", alice, { issuer: versionOneRoot });
row("a CA for servers only", refused, { issuer: serverRoot });
row("a CA without keyCertSign", refused, { issuer: noSignRoot });
row("a CA whose own signature is SHA-1", alice, { issuer: sha1Root });
row("a CA with a path length of 0", alice, { issuer: shortRoot });
row("below an intermediate of a CA with a path length of 0", refused, {
  issuer: between("too-deep", shortRoot),
  others: [between("too-deep", shortRoot)],
});
row("an intermediate that is presented", alice, { issuer: middle, others: [middle] });
row("an intermediate that is not presented", refused, { issuer: middle });
row("two intermediates", alice, { issuer: lower, others: [lower, middle] });
row("two intermediates in the wrong order", alice, { issuer: lower, others: [middle, lower] });
row("two intermediates and the root", alice, { issuer: lower, others: [root, middle, lower] });
row("the first of two intermediates is missing", refused, { issuer: lower, others: [middle] });
row("an intermediate with a path length of 0", alice, { issuer: shortMiddle, others: [shortMiddle] });
row("below one with a path length of 0", refused, { issuer: underShort, others: [underShort, shortMiddle] });
row("nine intermediates", alice, { issuer: deep[8], others: deep.slice(0, 9).toReversed() });
row("eleven intermediates", alice, { issuer: deep[10], others: deep.slice(0, 11).toReversed() });
row("eighteen intermediates", alice, { issuer: deep[17], others: deep.toReversed(), proxy: refused });
const odd: readonly (readonly [string, string, Partial<Wanted>])[] = [
  ["is no CA", refused, { extensions: [basicConstraints(false), keyUsage([5])] }],
  ["has no basicConstraints", refused, { extensions: [keyUsage([5])] }],
  ["is of version 1", refused, { extensions: [], version: 1 }],
  ["may not sign certificates", refused, { extensions: [basicConstraints(true), keyUsage([0])] }],
  ["has no keyUsage", alice, { extensions: [basicConstraints(true)] }],
  ["is for servers only", refused, { extensions: [...caUse, extendedUsage(["server"])] }],
  ["is for clients only", alice, { extensions: [...caUse, extendedUsage(["client"])] }],
  ["has expired", refused, { from: -48, to: -24 }],
  [
    "has an unknown critical extension",
    refused,
    { extensions: [...caUse, extension("2a03", encode(0x05), true)] },
  ],
  ["is signed with SHA-1", refused, { signature: "ecdsa-sha1" }],
];
for (const [title, apiserver, wanted] of odd) {
  const issuer = between(`odd ${title}`, root, wanted);
  row(`an intermediate that ${title}`, apiserver, { issuer, others: [issuer] });
}
row("a CA with name constraints, no name of a host", alice, { issuer: constrained });
const constraints: readonly (readonly [
  typeof root,
  string,
  readonly (readonly [number, string | Buffer])[],
  string?,
])[] = [
  [constrained, alice, [[0x82, "a.example.com"]]],
  [constrained, alice, [[0x82, "EXAMPLE.com"]]],
  [constrained, alice, [[0x82, "*.example.com"]]],
  [constrained, refused, [[0x82, "anexample.com"]]],
  [constrained, refused, [[0x82, "a.example.com."]]],
  [
    constrained,
    refused,
    [
      [0x82, "a.example.com"],
      [0x82, "b.test"],
    ],
  ],
  [constrained, alice, [[0x87, Buffer.of(10, 1, 2, 3)]]],
  [constrained, refused, [[0x87, Buffer.of(11, 1, 2, 3)]]],
  [constrained, refused, [[0x87, Buffer.alloc(16, 1)]]],
  [constrained, alice, [[0x81, "a@b.test"]], refused],
  [constrained, alice, [[0x86, "spiffe://b.test/x"]], refused],
  [constrained, refused, [[0x86, "urn:x"]]],
  [excluding, alice, [[0x82, "b.example.com"]]],
  [excluding, refused, [[0x82, "a.example.com"]]],
  [excluding, refused, [[0x82, "x.A.example.com"]]],
  [excluding, refused, [[0x82, "*.example.com"]]],
  [excluding, refused, [[0x82, "x.sub.test"]]],
  [excluding, alice, [[0x82, "sub.test"]]],
  [excluding, refused, [[0x87, Buffer.of(10, 1, 2, 3)]]],
  [excluding, alice, [[0x87, Buffer.of(11, 1, 2, 3)]]],
];
for (const [issuer, apiserver, list, proxy] of constraints) {
  const shown = list.map(([tag, value]) => `${tag.toString(16)} ${Buffer.from(value).toString("latin1")}`);
  row(
    `a CA ${issuer === constrained ? "that permits" : "that excludes"} some names, and ${shown.join(", ")}`,
    apiserver,
    {
      issuer,
      extensions: [...clientUse, altNames(list)],
      ...(proxy === undefined ? {} : { proxy }),
    },
  );
}
row("a CA with name constraints of an unknown type", refused, { issuer: strange });

row("expired", refused, { from: -48, to: -24 });
row("not valid yet", refused, { from: 24 });
row("dates as GeneralizedTime", alice, {
  times: [encode(0x18, Buffer.from("20200101000000Z")), encode(0x18, Buffer.from("20350101000000Z"))],
});
row("dates in the year 2055", alice, {
  times: [utcTime(-1), encode(0x18, Buffer.from("20550101000000Z"))],
});
row("a date that does not exist", refused, {
  times: [utcTime(-1), encode(0x17, Buffer.from("301340000000Z"))],
});
row("is a CA itself", alice, { extensions: [basicConstraints(true), extendedUsage(["client"])] });
row("version 1", alice, { extensions: [], version: 1 });
row("version 2", alice, { extensions: [], version: 2 });
row("a negative serial number", refused, { serial: Buffer.of(0xff, 1) });
row("serial number 0", alice, { serial: Buffer.of(0) });
row("a serial number of 20 bytes", alice, { serial: Buffer.alloc(20, 0x11) });
row("an unknown critical extension", refused, {
  extensions: [...clientUse, extension("2a03", encode(0x05), true)],
});
row("an unknown extension", alice, { extensions: [...clientUse, extension("2a03", encode(0x05))] });
row("an extension twice", refused, { extensions: [...clientUse, keyUsage([0])] });
row("a critical subjectKeyIdentifier", refused, {
  extensions: [...clientUse, extension("551d0e", encode(0x04, Buffer.of(1)), true)],
});
row("alternative names", alice, { extensions: [...clientUse, dnsNames("localhost")] });
row("critical alternative names of an unknown type", refused, {
  extensions: [...clientUse, altNames([[0x88, Buffer.of(0x2a, 3)]], true)],
});
row("an address of five bytes", refused, { extensions: [...clientUse, altNames([[0x87, Buffer.alloc(5)]])] });
row("a DNS name beyond ASCII", refused, { extensions: [...clientUse, altNames([[0x82, "\u00e9"]])] });
row("a critical list of policies", alice, {
  extensions: [...clientUse, extension("551d20", encode(0x30, encode(0x30, oid("2a0304"))), true)],
});
row("policy constraints that forbid mappings", alice, {
  extensions: [...clientUse, extension("551d24", encode(0x30, encode(0x81, Buffer.of(0))), true)],
});
const withPolicies = between("with-policies", root, {
  extensions: [...caUse, extension("551d24", encode(0x30, encode(0x80, Buffer.of(0))), true)],
});
row("an intermediate that asks for a policy, and none", refused, {
  issuer: withPolicies,
  others: [withPolicies],
});
row("two thousand alternative names", alice, {
  extensions: [...clientUse, dnsNames(...Array.from({ length: 2000 }, (_, at) => `n${at}.example.com`))],
});
row("two hundred groups", `alice:${Array.from({ length: 200 }, (_, at) => `g${at}`).join(",")}`, {
  name: nameOf(...Array.from({ length: 200 }, (_, at) => ["O", `g${at}`] as const), ["CN", "alice"]),
});

// A certificate may itself be in the bundle; it then needs no issuer.
const pinned = authority("pinned", "P-256", {
  name: nameOf(["CN", "pinned"]),
  extensions: clientUse,
  to: 9000,
});
rows.push({
  title: "in the bundle itself",
  apiserver: "pinned",
  chain: pinned.pem,
  key: privatePem(pinned.keys),
});

export const clientBundle: string = clientCas + pinned.pem;
export const clientRows: readonly ClientRow[] = rows;
