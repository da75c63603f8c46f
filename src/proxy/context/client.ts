/** What is known of one downstream socket: who calls, by which listener, and to which backend it is bound. */
import { Field } from "../../h2/core/field.ts";
import type { Caller } from "../../ledger/caller.ts";
import { type Identity, nobody, type Vouched } from "../identity/client-identity.ts";
import type { Bearer, CredentialMemo } from "../identity/trust.ts";
import type { Ends } from "../net/proxy-protocol.ts";

export type ClientOptions = {
  /** The peer's IP address, without a port. */
  readonly address: string;
  readonly port: number;
  readonly listener: string;
  readonly alpn: "h2" | "http/1.1";
  readonly isTls: boolean;
  /** Its own X-Forwarded-For is kept: it is one of the configured forwarders. */
  readonly isTrustedForwarder: boolean;
  /** What its certificate makes of it; left out: it has shown none. */
  readonly identity?: Identity;
  /** The host that it came for; left out: there is no TLS. */
  readonly host?: string;
  /** May it ask for this authority here? Left out: for any. */
  readonly mayAsk?: (authority: string) => boolean;
  /** When it is better off on another connection, since 1970; left out: never. */
  readonly leavesAt?: number;
  /** Its connection's ends, as far as they are known: a backend behind a balancer of its own is told of them. */
  readonly ends?: Ends;
};

/** The caller of the socket's latest request, and what it was looked up by: nearly every request finds it here. */
export type CallerMemo = {
  readonly word: Bearer | Vouched | undefined;
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
  /** For those who remember whether it is still there, longer than they need the rest. */
  readonly connection = { isOpen: true };
  /** Lets it finish what it has, and come again: whoever holds its socket says how. */
  sendAway: () => void = () => {};
  /** A backend answered one of its requests: an HTTP/2 session pays for control frames with that. */
  answered: () => void = () => {};
  /** One object for all its requests, so that HPACK sends it once. */
  readonly forwardedFor: Field;
  #backend: string | undefined = undefined;
  /** Where its watches are on their way to, to even the load; the others follow the first one that is there. */
  rebound: string | undefined = undefined;
  readonly credential: CredentialMemo = { value: "", bearer: undefined };
  caller: CallerMemo = { word: undefined, userAgent: "", caller: undefined };

  constructor(options: ClientOptions) {
    this.address = options.address;
    this.port = options.port;
    this.listener = options.listener;
    this.alpn = options.alpn;
    this.isTls = options.isTls;
    this.isTrustedForwarder = options.isTrustedForwarder;
    this.identity = options.identity ?? nobody;
    this.host = options.host ?? "";
    this.mayAsk = options.mayAsk ?? askAnything;
    this.ends = options.ends;
    this.leavesAt = options.leavesAt ?? Number.POSITIVE_INFINITY;
    this.forwardedFor = new Field("x-forwarded-for", options.address);
  }

  /** The backend that its requests go to (D2): sticky, so that it never sees two caches in turn. */
  get backend(): string | undefined {
    return this.#backend;
  }

  bind(backend: string): void {
    this.#backend = backend;
  }

  /** Binds it to `to`, unless it has left `from` already. */
  follow(from: string, to: string): void {
    if (this.#backend === from) this.#backend = to;
  }
}
