/** The CAs that issue the certificates of client-certificates.ts, good and odd. */
import { encode } from "../../src/x509/der.ts";
import {
  basicConstraints,
  extendedUsage,
  extension,
  type Issuer,
  keysFor,
  keyUsage,
  nameOf,
  type Wanted,
  writeCertificate,
} from "./x509-writer.ts";

export const caUse = [basicConstraints(true), keyUsage([5, 6])];

export function authority(
  cn: string,
  type = "P-256",
  wanted: Partial<Wanted> & { readonly label?: string } = {},
): Issuer & { readonly pem: string } {
  const name = wanted.name ?? nameOf(["CN", cn]);
  const keys = keysFor(type, wanted.label ?? `ca ${cn}`);
  return { name, keys, pem: writeCertificate({ name, keys, extensions: caUse, to: 24 * 3650, ...wanted }) };
}

export const root = authority("root");
export const rsaRoot = authority("rsa-root", "rsa-2048");
export const edRoot = authority("ed-root", "ed25519");
export const bigRoot = authority("p384-root", "P-384");
export const weakRoot = authority("weak-root", "rsa-1024");
export const oldRoot = authority("kubernetes", "rsa-2048", { label: "old" });
export const newRoot = authority("kubernetes", "rsa-2048", { label: "new" });
export const thirdRoot = authority("kubernetes", "P-256", { label: "third" });
export const expiredRoot = authority("expired-root", "P-256", { from: -48, to: -24 });
export const noCaRoot = authority("no-ca-root", "P-256", { extensions: [] });
export const versionOneRoot = authority("v1-root", "P-256", { extensions: [], version: 1 });
export const serverRoot = authority("server-root", "P-256", {
  extensions: [...caUse, extendedUsage(["server"])],
});
export const noSignRoot = authority("no-sign-root", "P-256", {
  extensions: [basicConstraints(true), keyUsage([0, 6])],
});
export const shortRoot = authority("short-root", "P-256", {
  extensions: [basicConstraints(true, 0), keyUsage([5])],
});
export const sha1Root = authority("sha1-root", "rsa-2048", { signature: "rsa-sha1" });
export const upper = authority("Upper Case");
export const printable = authority("Printable", "P-256", { name: nameOf(["CN", "Printable", "printable"]) });
/** A range of IPv4 addresses: 10.0.0.0/8. */
export const tens = encode(0x87, Buffer.of(10, 0, 0, 0, 255, 0, 0, 0));
export const domain = (name: string): Buffer => encode(0x82, Buffer.from(name));
export const subtrees = (tag: number, bases: readonly Buffer[]): Buffer[] =>
  bases.length === 0 ? [] : [encode(tag, ...bases.map((base) => encode(0x30, base)))];
export function constrainedBy(
  cn: string,
  permitted: readonly Buffer[],
  excluded: readonly Buffer[],
): typeof root {
  const value = encode(0x30, ...subtrees(0xa0, permitted), ...subtrees(0xa1, excluded));
  return authority(cn, "P-256", { extensions: [...caUse, extension("551d1e", value, true)] });
}
export const constrained = constrainedBy("constrained", [domain("example.com"), tens], []);
export const excluding = constrainedBy("excluding", [], [domain("a.example.com"), domain(".sub.test"), tens]);
export const strange = constrainedBy("strange", [encode(0x88, Buffer.of(0x2a))], []);
export const stranger = authority("stranger");
export const strangeKubernetes = authority("kubernetes", "rsa-2048", { label: "strange" });
export const absent = authority("absent");

export function between(
  cn: string,
  above: Issuer,
  wanted: Partial<Wanted> = {},
): Issuer & { readonly pem: string } {
  const name = nameOf(["CN", cn]);
  const keys = keysFor("P-256", `between ${cn}`);
  return { name, keys, pem: writeCertificate({ name, keys, issuer: above, extensions: caUse, ...wanted }) };
}

export const anchored = between("anchored", absent);
export const middle = between("middle", root);
export const lower = between("lower", middle);
export const shortMiddle = between("short-middle", root, {
  extensions: [basicConstraints(true, 0), keyUsage([5])],
});
export const underShort = between("under-short", shortMiddle);
export const deep = Array.from({ length: 18 }).reduce<(Issuer & { readonly pem: string })[]>(
  (all, _, at) => [...all, between(`deep-${at}`, all.at(-1) ?? root)],
  [],
);

/** The CA bundle, as both servers get it. */
export const clientCas: string = [
  root,
  rsaRoot,
  edRoot,
  bigRoot,
  weakRoot,
  oldRoot,
  newRoot,
  thirdRoot,
  expiredRoot,
  noCaRoot,
  versionOneRoot,
  serverRoot,
  noSignRoot,
  shortRoot,
  sha1Root,
  upper,
  printable,
  constrained,
  excluding,
  strange,
  anchored,
]
  .map(({ pem }) => pem)
  .join("");
