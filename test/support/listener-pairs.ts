/**
 * Certificates and keys of a listener of many kinds, each with whether a client that is written in Go accepts it.
 * test/real/certificates.test.ts compares the verdicts with a real kubectl.
 */
import { encode } from "../../src/x509/der.ts";
import {
  anchored,
  between,
  caUse,
  constrained,
  edRoot,
  excluding,
  lower,
  middle,
  newRoot,
  oldRoot,
  root,
  rsaRoot,
  stranger,
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
  privatePem,
  type Wanted,
  writeCertificate,
} from "./x509-writer.ts";

export type PairRow = {
  readonly title: string;
  /** True if a Go client that trusts `bundle` accepts the pair for "localhost". */
  readonly isAccepted: boolean;
  readonly bundle: string;
  readonly chain: string;
  readonly key: string;
};

type Pem = { readonly pem: string };

const hosts = dnsNames("localhost");
const serverUse = [basicConstraints(false), keyUsage([0]), extendedUsage(["server"]), hosts];
const rows: PairRow[] = [];

type Options = Partial<Wanted> & {
  readonly keyType?: string;
  readonly others?: readonly Pem[];
  readonly trusted?: Pem;
};

function row(title: string, isAccepted: boolean, options: Options = {}): void {
  const { keyType = "P-256", others = [], trusted = root, ...wanted } = options;
  const keys = keysFor(keyType, "listener");
  const name = nameOf(["CN", "watchkeeper"]);
  const certificate = writeCertificate({ name, keys, issuer: root, extensions: serverUse, ...wanted });
  rows.push({
    title,
    isAccepted,
    bundle: trusted.pem,
    chain: [certificate, ...others.map(({ pem }) => pem)].join(""),
    key: privatePem(keys),
  });
}

for (const type of ["P-256", "P-384", "P-521", "ed25519", "rsa-2048", "rsa-3072"])
  row(`a key ${type}`, true, { keyType: type });
for (const type of ["rsa-pss-2048", "ed448", "secp256k1"]) row(`a key ${type}`, false, { keyType: type });

row("no alternative names", false, { extensions: serverUse.slice(0, 3), name: nameOf(["CN", "localhost"]) });
row("no extensions", false, { extensions: [], name: nameOf(["CN", "localhost"]) });
row("only an e-mail address", false, { extensions: [altNames([[0x81, "a@localhost"]])] });
row("only a URI", false, { extensions: [altNames([[0x86, "https://localhost"]])] });
row("DNS names and addresses", true, {
  extensions: [
    altNames([
      [0x82, "localhost"],
      [0x87, Buffer.of(127, 0, 0, 1)],
    ]),
  ],
});
row("critical alternative names", true, { extensions: [altNames([[0x82, "localhost"]], true)] });
row("an address of five bytes", false, {
  extensions: [
    altNames([
      [0x82, "localhost"],
      [0x87, Buffer.alloc(5)],
    ]),
  ],
});
row("a DNS name beyond ASCII", false, {
  extensions: [
    altNames([
      [0x82, "localhost"],
      [0x82, "\u00e9"],
    ]),
  ],
});

const uses: readonly (readonly [Parameters<typeof extendedUsage>[0], boolean])[] = [
  [["server"], true],
  [["server", "client"], true],
  [["any"], true],
  [["client"], false],
  [["code"], false],
  [["smartcard"], false],
  [["client", "any"], true],
];
for (const [list, isAccepted] of uses)
  row(`extendedKeyUsage ${list.join(", ")}`, isAccepted, { extensions: [extendedUsage(list), hosts] });
row("no extendedKeyUsage", true, { extensions: [hosts] });
row("an extendedKeyUsage that is no list", false, { extensions: [extension("551d25", encode(0x05)), hosts] });
row("is a CA itself", true, { extensions: [basicConstraints(true), extendedUsage(["server"]), hosts] });

const names: readonly (readonly [string, boolean, readonly NamePart[]])[] = [
  ["no subject", true, []],
  ["a subject in a BMPString", true, [["CN", "proxy", "bmp"]]],
  ["a subject in a T61String", true, [["CN", "proxy", "t61"]]],
  ["a PrintableString with _", false, [["CN", "a_b", "printable"]]],
  ["a UniversalString", false, [["O", Buffer.of(0, 0, 0, 97), "universal"]]],
];
for (const [title, isAccepted, parts] of names) row(title, isAccepted, { name: nameOf(...parts) });

row("an unknown critical extension", false, {
  extensions: [...serverUse, extension("2a03", encode(0x05), true)],
});
row("an unknown extension", true, { extensions: [...serverUse, extension("2a03", encode(0x05))] });
row("an extension twice", false, { extensions: [...serverUse, hosts] });
row("a negative serial number", false, { serial: Buffer.of(0xff, 1) });
row("a signature with SHA-1", false, { issuer: rsaRoot, trusted: rsaRoot, signature: "rsa-sha1" });
row("a signature with RSA-PSS", true, { issuer: rsaRoot, trusted: rsaRoot, signature: "pss-sha256-32" });
row("a signature with an odd RSA-PSS", false, {
  issuer: rsaRoot,
  trusted: rsaRoot,
  signature: "pss-sha256-20",
});
row("an Ed25519 CA", true, { issuer: edRoot, trusted: edRoot });
row("its root behind it", true, { others: [root] });
row("a stranger behind it", true, { others: [stranger] });
row("an intermediate CA", true, { issuer: middle, others: [middle] });
row("two intermediate CAs in the wrong order", true, { issuer: lower, others: [middle, lower] });
row("an intermediate CA that is also trusted", true, {
  issuer: anchored,
  others: [anchored],
  trusted: anchored,
});
row("the wrong CA of two with one name behind it", true, {
  issuer: oldRoot,
  others: [newRoot],
  trusted: oldRoot,
});
row("both CAs of one name behind it", true, {
  issuer: oldRoot,
  others: [newRoot, oldRoot],
  trusted: oldRoot,
});
const odd: readonly (readonly [string, Partial<Wanted>])[] = [
  ["is no CA", { extensions: [basicConstraints(false), keyUsage([5])] }],
  ["may not sign", { extensions: [basicConstraints(true), keyUsage([0])] }],
  ["is for clients", { extensions: [...caUse, extendedUsage(["client"])] }],
  ["has an unknown critical extension", { extensions: [...caUse, extension("2a03", encode(0x05), true)] }],
];
for (const [title, wanted] of odd) {
  const issuer = between(`listener ${title}`, root, wanted);
  row(`an intermediate CA that ${title}`, false, { issuer, others: [issuer, root] });
}
row("a CA that permits other names", false, {
  issuer: constrained,
  others: [constrained],
  trusted: constrained,
});
row("a CA that excludes other names", true, { issuer: excluding, others: [excluding], trusted: excluding });
row("a certificate that expired", false, { from: -48, to: -24 });
row("a certificate that begins tomorrow", false, { from: 24 });

export const pairRows: readonly PairRow[] = rows;
