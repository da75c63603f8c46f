/**
 * CA bundles of many kinds, each with a server's certificate and whether kubectl (Go) trusts this server with this
 * bundle. test/real/certificates.test.ts compares the verdicts with a real kubectl.
 */
import { encode } from "../../src/x509/der.ts";
import {
  anchored,
  bigRoot,
  constrained,
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
  nameOf,
  privatePem,
  type Wanted,
  writeCertificate,
} from "./x509-writer.ts";

export type BundleRow = {
  readonly title: string;
  /** True if kubectl trusts the server. */
  readonly isTrusted: boolean;
  /** True if only OpenSSL trusts it, which is enough for watchkeeper. */
  readonly isTrustedByOpenSsl?: boolean;
  readonly bundle: string;
  readonly chain: string;
  readonly key: string;
};

type Pem = { readonly pem: string };

const hosts = dnsNames("localhost");
const serverUse = [basicConstraints(false), keyUsage([0]), extendedUsage(["server"]), hosts];
const rows: BundleRow[] = [];

function row(
  title: string,
  isTrusted: boolean,
  bundle: readonly Pem[],
  options: Partial<Wanted> & { readonly others?: readonly Pem[]; readonly isTrustedByOpenSsl?: boolean },
): void {
  const { others = [], isTrustedByOpenSsl = false, ...wanted } = options;
  const keys = keysFor("P-256", "server");
  const certificate = writeCertificate({
    name: nameOf(["CN", "kube-apiserver"]),
    keys,
    extensions: serverUse,
    ...wanted,
  });
  rows.push({
    title,
    isTrusted,
    isTrustedByOpenSsl,
    bundle: bundle.map(({ pem }) => pem).join(""),
    chain: [certificate, ...others.map(({ pem }) => pem)].join(""),
    key: privatePem(keys),
  });
}

row("its root", true, [root], { issuer: root });
row("an RSA root", true, [rsaRoot], { issuer: rsaRoot });
row("an Ed25519 root", true, [edRoot], { issuer: edRoot });
row("a P-384 root", true, [bigRoot], { issuer: bigRoot, signature: "ecdsa-sha384" });
row("a root with an RSA key of 1024 bits", true, [weakRoot], { issuer: weakRoot });
row("a root of version 1", true, [versionOneRoot], { issuer: versionOneRoot });
row("a root whose own signature is SHA-1", true, [sha1Root], { issuer: sha1Root });
row("another root", false, [stranger], { issuer: root });
row("its root among others", true, [stranger, root, rsaRoot], { issuer: root });
row("its root twice", true, [root, root], { issuer: root });
row("an expired root", false, [expiredRoot], { issuer: expiredRoot });
row("an expired root and another", false, [expiredRoot, root], { issuer: expiredRoot });
row("a certificate that is no CA", false, [noCaRoot], { issuer: noCaRoot });
row("a root without keyCertSign", false, [noSignRoot], { issuer: noSignRoot });
row("a root for servers", true, [serverRoot], { issuer: serverRoot });
row("the old CA of two with one name, which comes first", true, [oldRoot, newRoot], { issuer: oldRoot });
row("the old CA of two with one name, which comes last", true, [newRoot, oldRoot], { issuer: oldRoot });
row("the new CA of two with one name, which comes first", true, [newRoot, oldRoot], { issuer: newRoot });
row("the new CA of two with one name, which comes last", true, [oldRoot, newRoot], { issuer: newRoot });
row("the third CA of three with one name", true, [oldRoot, newRoot, thirdRoot], { issuer: thirdRoot });
row("two CAs with the name of an unknown one", false, [oldRoot, newRoot], { issuer: strangeKubernetes });
row("an intermediate CA without its root", true, [anchored], { issuer: anchored });
row("an intermediate CA without its root, which is presented", true, [middle], {
  issuer: middle,
  others: [middle],
});
row("an intermediate CA and its root", true, [middle, root], { issuer: middle });
row("the root above an intermediate that is presented", true, [root], { issuer: middle, others: [middle] });
row("the root above an intermediate that is not presented", false, [root], { issuer: middle });
row("the root above two intermediates in the wrong order", true, [root], {
  issuer: lower,
  others: [middle, lower],
});
row("the upper of two intermediates", true, [middle], { issuer: lower, others: [lower] });
row("a root below whose intermediate nothing may stand", false, [root], {
  issuer: underShort,
  others: [underShort, shortMiddle],
});
row("a root with a path length of 0", true, [shortRoot], { issuer: shortRoot });
row("a root whose name is compared byte by byte", false, [upper], {
  issuer: upper,
  issuerName: nameOf(["CN", "upper case"]),
  isTrustedByOpenSsl: true,
});
row("a root whose name has another string type", false, [printable], {
  issuer: printable,
  issuerName: nameOf(["CN", "Printable"]),
  isTrustedByOpenSsl: true,
});
row("a root that permits other names", false, [constrained], { issuer: constrained });
const inParts = encode(0xa2, encode(0x16, Buffer.from("localhost")));
row("a root that permits other names, for a name that is encoded in parts", false, [constrained], {
  issuer: constrained,
  extensions: [extension("551d11", encode(0x30, inParts))],
});
row("a root that permits other names, for one of these and a name in parts", false, [constrained], {
  issuer: constrained,
  extensions: [extension("551d11", encode(0x30, encode(0x82, Buffer.from("example.com")), inParts))],
});
row("a root that permits other names, for a certificate of version 1 with a name", false, [constrained], {
  issuer: constrained,
  version: 1,
});
row("a root that permits other names, for a certificate of version 2 with a name", false, [constrained], {
  issuer: constrained,
  version: 2,
});
row("a root that permits other names, for a common name", false, [constrained], {
  issuer: constrained,
  name: nameOf(["CN", "localhost"]),
  extensions: [],
});
row("a root that permits other names, for a common name beside an address", false, [constrained], {
  issuer: constrained,
  name: nameOf(["CN", "localhost"]),
  extensions: [altNames([[0x87, Buffer.of(10, 1, 2, 3)]])],
});
row("a root, for a client's certificate of version 1", false, [root], {
  issuer: root,
  version: 1,
  extensions: [extendedUsage(["client"]), hosts],
});
const broken = { pem: "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n" };
row("another root, and a broken certificate", false, [stranger, broken], { issuer: root });
row("two CAs of one name, and a broken certificate", true, [newRoot, oldRoot, broken], {
  issuer: oldRoot,
});
row("a root that excludes other names", true, [excluding], { issuer: excluding });
row("a root, for a certificate with SHA-1", false, [rsaRoot], { issuer: rsaRoot, signature: "rsa-sha1" });
row("a root, for an expired certificate", false, [root], { issuer: root, from: -48, to: -24 });
row("a root, for a client's certificate", false, [root], {
  issuer: root,
  extensions: [extendedUsage(["client"]), hosts],
});
row("a root, for a certificate with anyExtendedKeyUsage", true, [root], {
  issuer: root,
  extensions: [extendedUsage(["any"]), hosts],
});
row("a root, for a certificate with keyUsage digitalSignature and keyCertSign", true, [root], {
  issuer: root,
  extensions: [keyUsage([0, 5]), hosts],
});
row("a root, for a certificate of another host", false, [root], {
  issuer: root,
  extensions: [altNames([[0x82, "other.test"]])],
});
row("a root, for a certificate with an unknown critical extension", false, [root], {
  issuer: root,
  extensions: [...serverUse, extension("2a03", encode(0x05), true)],
});
row("the server's own certificate", true, [], { issuer: undefined });
const [own] = rows.slice(-1);
if (own !== undefined) rows[rows.length - 1] = { ...own, bundle: own.chain };

export const bundleRows: readonly BundleRow[] = rows;
