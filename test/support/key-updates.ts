/** A TLS 1.3 client that sends KeyUpdate messages (RFC 8446 §4.6.3), which Node's own client cannot. */
import { createCipheriv, createHmac } from "node:crypto";
import { once } from "node:events";
import net from "node:net";
import tls from "node:tls";

/** HKDF-Expand-Label (RFC 8446 §7.1) of at most 32 bytes, without a context. */
function derived(secret: Buffer, label: string, length: number): Buffer {
  const name = Buffer.from(`tls13 ${label}`);
  const info = Buffer.concat([Buffer.of(0, length, name.length), name, Buffer.of(0, 1)]);
  return createHmac("sha256", secret).update(info).digest().subarray(0, length);
}

/** KeyUpdate with `update_requested`, as the contents of a record of type handshake. */
const keyUpdate = Buffer.of(24, 0, 0, 1, 1, 22);

/** Returns a record (RFC 8446 §5.2). `contents` ends with its type. `at`: how many records the key has encrypted. */
function sealed(secret: Buffer, contents: Buffer, at: number): Buffer {
  const length = contents.length + 16;
  const header = Buffer.of(23, 3, 3, length >> 8, length & 0xff);
  const nonce = derived(secret, "iv", 12);
  nonce.writeUInt8(nonce.readUInt8(11) ^ at, 11);
  const cipher = createCipheriv("aes-128-gcm", derived(secret, "key", 16), nonce).setAAD(header);
  return Buffer.concat([header, cipher.update(contents), cipher.final(), cipher.getAuthTag()]);
}

export type KeyUpdater = {
  readonly socket: net.Socket;
  /** Returns so many records, each with a KeyUpdate and encrypted with the key of the one before. */
  records(count: number): Buffer;
};

/** Shakes hands and sends `first`. Afterwards, nothing but records with KeyUpdates may be sent on the socket. */
export async function connectKeyUpdater(port: number, ca: string, first: Buffer): Promise<KeyUpdater> {
  const socket = net.connect(port, "127.0.0.1");
  const client = tls.connect({
    socket,
    ca,
    servername: "localhost",
    ALPNProtocols: ["h2"],
    minVersion: "TLSv1.3",
    ciphers: "TLS_AES_128_GCM_SHA256",
  });
  let secret: Buffer = Buffer.alloc(0);
  client.on("keylog", (line) => {
    const [label, , value = ""] = line.toString().trim().split(" ");
    if (label === "CLIENT_TRAFFIC_SECRET_0") secret = Buffer.from(value, "hex");
  });
  client.on("error", () => {});
  client.resume();
  socket.on("error", () => {});
  await once(client, "secureConnect");
  // Until the client's Finished is on its way.
  await new Promise((resolve) => setTimeout(resolve, 50));
  socket.write(sealed(secret, Buffer.concat([first, Buffer.of(23)]), 0));
  let at = 1;
  return {
    socket,
    records(count) {
      const all: Buffer[] = [];
      for (let left = count; left > 0; left -= 1) {
        all.push(sealed(secret, keyUpdate, at));
        secret = derived(secret, "traffic upd", 32);
        at = 0;
      }
      return Buffer.concat(all);
    },
  };
}
