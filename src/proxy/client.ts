/** What is known of one downstream socket: who calls, by which listener, and to which backend it is bound. */
import { Field } from "../h2/field.ts";
import type { CredentialMemo } from "./trust.ts";

export type ClientOptions = {
  /** The peer's IP address, without a port. */
  readonly address: string;
  readonly port: number;
  readonly listener: string;
  readonly alpn: "h2" | "http/1.1";
  readonly isTls: boolean;
  /** Its own X-Forwarded-For is kept: it is one of the configured forwarders. */
  readonly isTrustedForwarder: boolean;
  /** It showed a client certificate, which this version cannot vouch for: its requests are refused by name. */
  readonly hasCertificate: boolean;
};

export class Client {
  readonly address: string;
  readonly port: number;
  readonly listener: string;
  readonly alpn: "h2" | "http/1.1";
  readonly isTls: boolean;
  readonly isTrustedForwarder: boolean;
  readonly hasCertificate: boolean;
  /** One object for all its requests, so that HPACK sends it once. */
  readonly forwardedFor: Field;
  /** The backend that its requests go to (D2): sticky, so that it never sees two caches in turn. */
  backend: string | undefined = undefined;
  readonly credential: CredentialMemo = { value: "", bearer: undefined };

  constructor(options: ClientOptions) {
    this.address = options.address;
    this.port = options.port;
    this.listener = options.listener;
    this.alpn = options.alpn;
    this.isTls = options.isTls;
    this.isTrustedForwarder = options.isTrustedForwarder;
    this.hasCertificate = options.hasCertificate;
    this.forwardedFor = new Field("x-forwarded-for", options.address);
  }
}
