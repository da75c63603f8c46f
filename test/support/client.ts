import { Client, type ClientOptions } from "../../src/upstream/context/client.ts";

/** Returns an HTTP/2 client over TLS. Its address is arbitrary, unless `options` states one. */
export function clientOf(options: Partial<ClientOptions> = {}): Client {
  return new Client({
    address: "10.0.0.9",
    port: 40_000,
    listener: "kube",
    alpn: "h2",
    isTls: true,
    isTrustedForwarder: false,
    ...options,
  });
}
