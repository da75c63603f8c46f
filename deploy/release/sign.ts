/** Makes signatures in the format of minisign (https://jedisct1.github.io/minisign/) with an Ed25519 key in PEM. */
import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign } from "node:crypto";

const blake2b = (bytes: Buffer): Buffer => createHash("blake2b512").update(bytes).digest();

function publicBytes(key: KeyObject): Buffer {
  return Buffer.from(createPublicKey(key).export({ format: "jwk" }).x ?? "", "base64url");
}

/** minisign compares this number before it verifies a signature, so that it can report a wrong key. */
function keyId(key: KeyObject): Buffer {
  return createHash("sha256").update(publicBytes(key)).digest().subarray(0, 8);
}

export type Signed = { readonly signature: string; readonly publicKey: string };

/** Returns the contents of FILE.minisig and of minisign.pub. The signature also covers `comment`. */
export function minisigned(bytes: Buffer, pem: string, comment: string): Signed {
  const key = createPrivateKey(pem);
  if (key.asymmetricKeyType !== "ed25519")
    throw new Error("The key for signatures must be an Ed25519 key in PEM");
  const signature = sign(null, blake2b(bytes), key);
  const whole = sign(null, Buffer.concat([signature, Buffer.from(comment)]), key);
  const line = Buffer.concat([Buffer.from("ED"), keyId(key), signature]).toString("base64");
  const publicLine = Buffer.concat([Buffer.from("Ed"), keyId(key), publicBytes(key)]).toString("base64");
  return {
    signature: `untrusted comment: signature of watchkeeper\n${line}\ntrusted comment: ${comment}\n${whole.toString("base64")}\n`,
    publicKey: `untrusted comment: minisign public key of watchkeeper\n${publicLine}\n`,
  };
}
