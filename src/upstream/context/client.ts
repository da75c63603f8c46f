import { Field } from "../../h2/core/field.ts";
import type { RequestInfo } from "../../kube/request-info.ts";
import type { Caller } from "../../ops/ledger/caller.ts";
import { type Asserted, type Identity, unidentified } from "../identity/asserted-identity.ts";
import type { Bearer, CredentialMemo } from "../identity/trust.ts";
import type { Ends } from "../net/proxy-protocol.ts";
import { WorkMeter } from "./work-meter.ts";

export type ClientOptions = {
  /** The peer's IP address, without a port. */
  readonly address: string;
  readonly port: number;
  readonly listener: string;
  readonly alpn: "h2" | "http/1.1";
  readonly isTls: boolean;
  /** True if the configuration trusts the peer to name its clients in X-Forwarded-For. */
  readonly isTrustedForwarder: boolean;
  /** The identity in the client's certificate; default: the client has presented no certificate. */
  readonly identity?: Identity;
  /** Name of the host that the client's SNI has selected among the listener's hosts; default: no TLS. */
  readonly host?: string;
  /**
   * True if the client may send requests with this `:authority` on this connection; default: every `:authority` is
   * allowed.
   */
  readonly mayAsk?: (authority: string) => boolean;
  /** When the client should reconnect, in ms since 1970; default: never. */
  readonly leavesAt?: number;
  /** Addresses of both ends of the client's connection, for a PROXY header to a backend behind a load balancer. */
  readonly ends?: Ends;
};

/**
 * The caller (user, program and address) of the connection's latest request, and the request's credential (`word`) and
 * User-Agent, by which the caller was found. Remembered, because the next request usually has the same caller.
 */
export type CallerMemo = {
  readonly word: Bearer | Asserted | undefined;
  readonly userAgent: string;
  readonly caller: Caller | undefined;
};

/** The HTTP/2 session or HTTP/1.1 connection of a client. */
export type ClientSession = {
  /** Closes the connection when its open requests have ended. */
  drain(): void;
  /** Permits an HTTP/2 client a few more control frames (D16), because a backend has answered a request. */
  answered(): void;
};

/** The target of the latest request and its classification, kept because clients poll the same object. */
export type TargetMemo = { method: string; path: string; info: RequestInfo | undefined };

const askAnything = (): boolean => true;
const noFields: readonly Field[] = [];

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
  /** One Field object for all of the client's requests. HPACK thus sends the field's text only once. */
  readonly forwardedFor: Field;
  #session: ClientSession | undefined = undefined;
  readonly #connection = { isOpen: true };
  #backend: string | undefined = undefined;
  #rebound: string | undefined = undefined;
  /** The work that the client causes at `backend`. */
  readonly work = new WorkMeter();
  readonly credential: CredentialMemo = { value: "", bearer: undefined };
  readonly target: TargetMemo = { method: "", path: "", info: undefined };
  #watchFields: readonly Field[] = noFields;
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

  attach(session: ClientSession): void {
    this.#session = session;
  }

  /** Closes the connection when its open requests have ended, so that the client reconnects. */
  sendAway(): void {
    this.#session?.drain();
  }

  answered(): void {
    this.#session?.answered();
  }

  disconnected(): void {
    this.#connection.isOpen = false;
  }

  /**
   * `isOpen` is true while the client is connected. This is a separate object, so that an observer can keep it without
   * keeping the whole Client in memory.
   */
  get connection(): { readonly isOpen: boolean } {
    return this.#connection;
  }

  get caller(): CallerMemo {
    return this.#caller;
  }

  /**
   * Returns the fields that the connection's latest answered watch had, if these are equal; otherwise these. Watches of
   * one connection thus share one list.
   */
  shareWatchFields(fields: readonly Field[]): readonly Field[] {
    if (!areEqual(fields, this.#watchFields)) this.#watchFields = fields;
    return this.#watchFields;
  }

  remember(caller: CallerMemo): void {
    this.#caller = caller;
  }

  /**
   * The backend that gets the client's requests (D2); undefined: none was chosen yet. It rarely changes: another
   * backend's caches may be behind, and the client would then read older versions.
   */
  get backend(): string | undefined {
    return this.#backend;
  }

  bind(backend: string): void {
    this.#backend = backend;
  }

  /** The backend to which the client is being moved, its watches first and then its requests; undefined: none. */
  get rebound(): string | undefined {
    return this.#rebound;
  }

  rebind(backend: string | undefined): void {
    this.#rebound = backend;
  }

  /** Binds the client to `to` if it is still bound to `from`. */
  follow(from: string, to: string): void {
    if (this.#backend === from) this.#backend = to;
  }
}

function areEqual(some: readonly Field[], others: readonly Field[]): boolean {
  return some.length === others.length && some.every((field, index) => field.equals(others[index]));
}
