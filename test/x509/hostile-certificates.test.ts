import { createPrivateKey, createPublicKey, generateKeyPairSync, X509Certificate } from "node:crypto";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { encode } from "../../src/x509/der.ts";
import { purposes, rootsIn, type Verified, verifyPresented } from "../../src/x509/verify.ts";
import {
  caUse,
  constrainedBy,
  domain,
  edRoot,
  middle,
  oldRoot,
  root,
  rsaRoot,
} from "../support/client-authorities.ts";
import { seeded } from "../support/random.ts";
import {
  altNames,
  basicConstraints,
  dnsNames,
  extendedUsage,
  extension,
  type Keys,
  keysFor,
  keyUsage,
  nameOf,
  writeCertificate,
} from "../support/x509-writer.ts";

const test = suite("x509/hostile-certificates");

const keys = keysFor("P-256", "hostile");
const name = nameOf(["O", "system:masters"], ["CN", "alice"]);
const clientUse = [basicConstraints(false), keyUsage([0]), extendedUsage(["client"]), dnsNames("a.test")];
const pem = [root, rsaRoot, edRoot, oldRoot].map((one) => one.pem).join("");

function verdictOn(presented: readonly X509Certificate[], bundle = pem): Verified | string {
  return verifyPresented(presented, {
    roots: rootsIn(bundle),
    purpose: purposes.client,
    wallMs: Date.now(),
  });
}

/** Returns the part of a certificate that its signature covers. */
function signedPart({ raw }: X509Certificate): Buffer {
  const start = 4; // the tag and three bytes of length of a certificate of more than 255 bytes
  return raw.subarray(start, start + 4 + raw.readUInt16BE(start + 2));
}

const originals = [root, rsaRoot, edRoot, oldRoot].map((issuer) => [
  new X509Certificate(writeCertificate({ name, keys, issuer, extensions: clientUse })),
]);
originals.push([
  new X509Certificate(writeCertificate({ name, keys, issuer: middle, extensions: clientUse })),
  new X509Certificate(middle.pem),
]);

const random = seeded(1422);

function mutated(bytes: Buffer): Buffer {
  const at = random.below(bytes.length);
  const kind = random.below(8);
  const one = Buffer.of(random.below(256));
  if (kind === 0) return Buffer.concat([bytes.subarray(0, at), one, bytes.subarray(at)]);
  if (kind === 1) return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1)]);
  if (kind === 2) return Buffer.concat([bytes, one]);
  const changed = Buffer.from(bytes);
  changed[at] = kind === 3 ? random.below(256) : (bytes[at] ?? 0) ^ (1 << random.below(8));
  return changed;
}

function parsed(bytes: Buffer): X509Certificate | undefined {
  try {
    return new X509Certificate(bytes);
  } catch {
    return undefined; // OpenSSL refuses it, and so ends the handshake
  }
}

test("of 10,000 chains with one changed byte, none is accepted whose signed bytes changed", () => {
  for (const chain of originals) assert.type(verdictOn(chain), "object");
  const counts = { unread: 0, refused: 0, accepted: 0 };
  for (let round = 0; round < 10_000; round += 1) {
    const chain = originals[round % originals.length] ?? [];
    const at = random.below(chain.length);
    const own = chain[at];
    assert.ok(own);
    const other = parsed(mutated(own.raw));
    const verdict = other && verdictOn(chain.with(at, other));
    if (other === undefined || verdict === undefined) counts.unread += 1;
    else if (typeof verdict === "string") counts.refused += 1;
    else {
      counts.accepted += 1;
      assert.ok(signedPart(other).equals(signedPart(own)), other.raw.toString("hex"));
    }
  }
  assert.ok(counts.refused > 1000 && counts.unread > 1000, JSON.stringify(counts));
});

test("a CA bundle with a changed byte is read without an exception, and a broken certificate of it is ignored", () => {
  const der = new X509Certificate(root.pem).raw;
  for (let round = 0; round < 1000; round += 1) {
    const block = `-----BEGIN CERTIFICATE-----\n${mutated(der).toString("base64")}\n-----END CERTIFICATE-----\n`;
    assert.ok(rootsIn(block + pem).length >= 4);
  }
});

const big = (text = ""): bigint => BigInt(`0x${Buffer.from(text, "base64url").toString("hex")}`);

function base64(number: bigint): string {
  const hex = number.toString(16);
  return Buffer.from(hex.padStart(hex.length + (hex.length % 2), "0"), "hex").toString("base64url");
}

/** Returns an RSA key whose exponents have changed places, so that a check takes as long as a signature. */
function slowKeys(): Keys {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 3072 });
  const jwk = privateKey.export({ format: "jwk" });
  const { e = "", d = "", n = "", p, q } = jwk;
  const [dp, dq] = [base64(big(e) % (big(p) - 1n)), base64(big(e) % (big(q) - 1n))];
  return {
    privateKey: createPrivateKey({ key: { ...jwk, e: d, d: e, dp, dq }, format: "jwk" }),
    publicKey: createPublicKey({ key: { kty: "RSA", n, e: d }, format: "jwk" }),
  };
}

test("a chain of RSA keys with exponents that Go refuses is refused before any signature is checked", () => {
  const slow = slowKeys();
  const ca = { name: nameOf(["CN", "slow"]), keys: slow };
  const top = writeCertificate({ ...ca, extensions: caUse });
  const leaf = writeCertificate({ name, keys, issuer: ca, extensions: clientUse });
  const chain = [new X509Certificate(leaf), new X509Certificate(top)];
  let checks = 0;
  for (const one of chain) one.verify = () => ++checks > 0;
  assert.is(verdictOn(chain), "its public key is of a type or size that is not accepted");
  assert.is(
    verdictOn(chain.slice(0, 1), top),
    "it is signed by an unknown authority: the issuer's key cannot have signed it",
  );
  assert.is(checks, 0);
});

test("a certificate with a compressed point is refused, as Go cannot read it", () => {
  const whole = keys.publicKey.export({ type: "spki", format: "der" });
  const point = whole.subarray(-65);
  const algorithm = whole.subarray(2, -68);
  const bits = Buffer.concat([Buffer.of(0, 2 + ((point.at(-1) ?? 0) & 1)), point.subarray(1, 33)]);
  const der = encode(0x30, algorithm, encode(0x03, bits));
  const publicKey = createPublicKey({ key: der, type: "spki", format: "der" });
  // Otherwise the key would be written with its whole point.
  const short = { ...keys, publicKey: Object.assign(publicKey, { export: () => der }) };
  const leaf = writeCertificate({ name, keys: short, issuer: root, extensions: clientUse });
  assert.is(
    verdictOn([new X509Certificate(leaf)]),
    "its public key is of a type or size that is not accepted",
  );
});

test("50,000 names in a certificate take bounded time, also below a CA with 200 name constraints", () => {
  const numbers = Array.from({ length: 100 }, (_, at) => at);
  const permitted = numbers.map((at) => domain(`d${at}.test`));
  const excluded = numbers.map((at) => domain(`x.d${at}.test`));
  const ca = constrainedBy("many names", permitted, excluded);
  const names = Array.from({ length: 50_000 }, (_, at) => `n${at}.d${at % 100}.test`);
  const verdictBelow = (issuer: typeof root, count: number): string => {
    const leaf = { name, keys, issuer, extensions: [dnsNames(...names.slice(0, count))] };
    const presented = [new X509Certificate(writeCertificate(leaf))];
    const start = performance.now();
    const verdict = verdictOn(presented, issuer.pem);
    const tookMs = performance.now() - start;
    assert.ok(tookMs < 2000, `${tookMs} ms`);
    return typeof verdict === "string" ? verdict : "verified";
  };
  assert.is(verdictBelow(root, 50_000), "verified");
  assert.is(verdictBelow(ca, 1250), "verified");
  assert.is(verdictBelow(ca, 50_000), "it has too many names for a CA's name constraints");
});

test("a CA whose name constraints are malformed inside issues nothing", () => {
  const ca = constrainedBy("broken", [domain("a.test")], []);
  const value = encode(0x30, encode(0xa0, Buffer.of(0x30, 0x09, 0x82)));
  const other = writeCertificate({ ...ca, extensions: [...caUse, extension("551d1e", value, true)] });
  const leaf = writeCertificate({ name, keys, issuer: ca, extensions: [altNames([[0x82, "b.test"]])] });
  assert.is(verdictOn([new X509Certificate(leaf)], other), "it is signed by an unknown authority");
});

test.run();
