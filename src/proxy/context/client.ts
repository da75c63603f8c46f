/** What is known of one downstream socket: its client, its listener, and the backend to which it is bound. */
import { Field } from "../../h2/core/field.ts";
import type { Caller } from "../../ledger/caller.ts";
import { type Asserted, type Identity, unidentified } from "../identity/client-identity.ts";
import type { Bearer, CredentialMemo } from "../identity/trust.ts";
import type { Ends } from "../net/proxy-protocol.ts";

export type ClientOptions = {
  /** The peer's IP address, without a port. */
  readonly address: string;
  readonly port: number;
  readonly listener: string;
  readonly alpn: "h2" | "http/1.1";
  readonly isTls: boolean;
  /** True if it is one of the configured forwarders, whose own X-Forwarded-For is kept. */
  readonly isTrustedForwarder: boolean;
  /** The identity in its certificate; default: none was presented. */
  readonly identity?: Identity;
  /** The host that SNI selected; default: no TLS. */
  readonly host?: string;
  /** True if the client may request this authority here; default: any. */
  readonly mayAsk?: (authority: string) => boolean;
  /** When it should reconnect, in ms since 1970; default: never. */
  readonly leavesAt?: number;
  /** Both ends of its connection, if known: a backend behind its own load balancer gets them in a PROXY header. */
  readonly ends?: Ends;
};

/** The caller of the socket's latest request, and the lookup key: nearly every request finds its caller here. */
export type CallerMemo = {
  readonly word: Bearer | Asserted | undefined;
  readonly userAgent: string;
  readonly caller: Caller | undefined;
};

const askAnything = (): boolean => true;

export class Client {
  readonly address: string;
  readonly port: number;
  readonly listener: string;
  readonly alpn: "h2" | "http/1.1";
  readonly isTls: boolean;
  readonly isTrustedForwarder: boolean;
  readonly identity: Identity;
  readonly host: string;
  readonly mayAsk: (authority: string) => boolean;
  readonly leavesAt: number;
  readonly ends: Ends | undefined;
  /** Kept by observers that need to know whether it is open, longer than they need the rest. */
  readonly connection = { isOpen: true };
  /** Closes the connection after its open requests, so that the client reconnects. The owner of the socket sets it. */
  sendAway: () => void = () => {};
  /** Called when a backend answered one of its requests: HTTP/2 sessions limit control frames by answers. */
  answered: () => void = () => {};
  /** One object for all its requests, so that HPACK sends it once. */
  readonly forwardedFor: Field;
  #backend: string | undefined = undefined;
  #rebound: string | undefined = undefined;
  readonly credential: CredentialMemo = { value: "", bearer: undefined };
  #caller: CallerMemo = { word: undefined, userAgent: "", caller: undefined };

  constructor(options: ClientOptions) {
    this.address = options.address;
    this.port = options.port;
    this.listener = options.listener;
    this.alpn = options.alpn;
    this.isTls = options.isTls;
    this.isTrustedForwarder = options.isTrustedForwarder;
    this.identity = options.identity ?? unidentified;
    this.host = options.host ?? "";
    this.mayAsk = options.mayAsk ?? askAnything;
    this.ends = options.ends;
    this.leavesAt = options.leavesAt ?? Number.POSITIVE_INFINITY;
    this.forwardedFor = new Field("x-forwarded-for", options.address);
  }

  get caller(): CallerMemo {
    return this.#caller;
  }

  remember(caller: CallerMemo): void {
    this.#caller = caller;
  }

  /** The backend that its requests go to (D2): sticky, so that the client never reads two caches in turn. */
  get backend(): string | undefined {
    return this.#backend;
  }

  bind(backend: string): void {
    this.#backend = backend;
  }

  /** The backend that its watches are being moved to, to even the load. Its requests follow the first watch that arrives. */
  get rebound(): string | undefined {
    return this.#rebound;
  }

  /** Undefined: its watches have arrived, or may stay. */
  rebind(backend: string | undefined): void {
    this.#rebound = backend;
  }

  /** Binds it to `to`, unless it has left `from` already. */
  follow(from: string, to: string): void {
    if (this.#backend === from) this.#backend = to;
  }
}
