import { Client, type ClientOptions } from "../../src/proxy/context/client.ts";

/** A client over HTTP/2 and TLS, at an address of no meaning unless `options` states one. */
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
