/**
 * Handles an Upgrade (SPDY/3.1 and websocket: exec, attach, port-forward): identifies the client, dials a backend, and
 * joins both sockets in a tunnel. A tunnel may be silent, so it has no idle timer (D7). The proxy cannot send PINGs in
 * a tunnel, so the tunnel ends when health checks find its backend dead (D6).
 */
import { type IncomingMessage, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { Clock } from "../../base/clock.ts";
import { clipped } from "../../base/detach.ts";
import { Failure, failureFrom } from "../../base/failure.ts";
import { limits } from "../../base/limits.ts";
import type { Journal } from "../../events/journal.ts";
import type { Field } from "../../h2/core/field.ts";
import type { RequestHead } from "../../h2/core/fields.ts";
import { classify } from "../../kube/request-info.ts";
import type { Client } from "../../upstream/context/client.ts";
import { withoutPrefix } from "../../upstream/context/path-prefix.ts";
import type { Asserted, AssertedTrust } from "../../upstream/identity/asserted-identity.ts";
import { closeAfterFlush } from "../../upstream/net/socket-end.ts";
import { writeHead, writeUpgrade } from "../h1/h1-head.ts";
import { headOf, readUpgrade } from "../h1/h1-request.ts";
import type { Limit } from "../limits/limit.ts";
import { endAll } from "../limits/request-limits.ts";
import type { Sheddable } from "../overload/load-shedding.ts";
import { localReplyTo } from "../request/local-reply.ts";
import { pathOf, type RequestNames } from "../request/request-names.ts";
import type { DialledSocket } from "./dial-through.ts";
import type { WatchTunnel } from "./stuck-sockets.ts";
import { Tunnel, type TunnelParts } from "./upgrade-tunnel.ts";

export type UpgradeParts = {
  /** Returns the path below which the backends serve the API; "": at the root. */
  readonly pathPrefix: () => string;
  readonly identify: (
    request: RequestHead,
    client: Client,
  ) =>
    | {
        readonly fields: readonly Field[];
        readonly auditId: string;
        readonly asserted?: Asserted | undefined;
      }
    | Failure;
  /**
   * Returns the limits that count the Upgrade until it is answered. If the Upgrade exceeds a limit, returns the refusal
   * instead.
   */
  readonly limitsOf?: (
    request: RequestHead,
    client: Client,
    asserted: Asserted | undefined,
  ) => readonly Limit[] | Failure;
  /** Dials backends until one accepts. `trust`: which certificate of the proxy is presented. */
  readonly dialUpgrade: (
    client: Client,
    trust: AssertedTrust | undefined,
  ) => Promise<DialledSocket | Failure>;
  readonly watchTunnel: WatchTunnel;
  readonly clock: Clock;
  readonly journal: Journal;
};

export class UpgradeHandler {
  readonly #parts: UpgradeParts;
  readonly #tunnels = new Map<Tunnel, { readonly backend: string; readonly context: Sheddable["context"] }>();

  constructor(parts: UpgradeParts) {
    this.#parts = parts;
  }

  get openCount(): number {
    return this.#tunnels.size;
  }

  openOn(backend: string): number {
    let count = 0;
    for (const each of this.#tunnels.values()) if (each.backend === backend) count += 1;
    return count;
  }

  /** Returns a copy, because tunnels may end while the caller iterates. */
  get live(): readonly Sheddable[] {
    const isLive = (tunnel: Tunnel): boolean => this.#tunnels.has(tunnel);
    return Array.from(this.#tunnels, ([tunnel, { context }]) => ({
      context,
      get isEnded() {
        return !isLive(tunnel);
      },
      cut: () => tunnel.shed(),
    }));
  }

  /** Ends all tunnels, as the last step of a drain. */
  cut(): void {
    for (const tunnel of this.#tunnels.keys()) tunnel.cut("draining");
  }

  /** Takes the socket over. `early`: the bytes that came after the request's head. */
  upgrade(request: IncomingMessage, socket: Socket, early: Buffer, client: Client): void {
    const { method = "", url = "", headers } = request;
    const requester = {
      client: client.address,
      userAgent: clipped(headers["user-agent"] ?? "", limits.userAgentChars),
      method,
      verb: "CONNECT",
      path: pathOf(url),
      auditId: "",
    };
    const upgrade = readUpgrade(headOf(request, client.isTls));
    if (typeof upgrade === "string")
      return this.#refuse(socket, requester, new Failure("bad-request", "client", upgrade));
    const prefix = this.#parts.pathPrefix();
    const head = withoutPrefix(upgrade.head, prefix);
    const identified = this.#parts.identify(head, client);
    if (identified instanceof Failure) return this.#refuse(socket, requester, identified);
    const { fields, auditId, asserted } = identified;
    const named = { ...requester, auditId };
    const { upgrades } = upgrade;
    const limited = this.#parts.limitsOf?.(head, client, asserted) ?? [];
    if (limited instanceof Failure) return this.#refuse(socket, named, limited);
    const isWatch = classify(head.method, head.path).kind === "watch";
    const parts = {
      down: socket,
      head: writeUpgrade({ ...head, path: prefix + head.path, fields }, upgrades),
      upgrades,
      early,
      isWatch,
    };
    this.#parts
      .dialUpgrade(client, asserted?.trust)
      .then((reached) =>
        reached instanceof Failure
          ? this.#refuse(socket, named, reached)
          : this.#open({ ...parts, up: reached.socket }, reached.backend, named),
      )
      .catch((reason: unknown) => this.#refuse(socket, named, failureFrom(reason, "proxy")))
      .finally(() => endAll(limited));
  }

  /** The callbacks live as long as the tunnel, so they use a small `Requester` and not the whole request (A26). */
  #open(parts: TunnelParts, backend: string, requester: Requester): void {
    const { down, up } = parts;
    if (down.destroyed || down.readableEnded) {
      up.destroy();
      down.destroy();
      return;
    }
    const { client, auditId } = requester;
    const names = { client, backend, auditId };
    const { clock, journal } = this.#parts;
    const end = (): void => {
      this.#tunnels.delete(tunnel);
      stopWatching();
    };
    const tunnel = new Tunnel(parts, {
      opened: () => journal.write({ kind: "tunnel.opened", ...names }),
      failed: (failure) => {
        end();
        this.#refuse(down, requester, failure);
      },
      contained: (message) => journal.write({ kind: "internal.error", scope: "session", message }),
      ended: (reason) => {
        end();
        const { events } = tunnel;
        journal.write({
          kind: "tunnel.ended",
          ...names,
          reason,
          ...(events === undefined ? {} : { events }),
        });
        closeAfterFlush(down, clock);
      },
    });
    const kind = parts.isWatch ? "watch" : "long-running";
    this.#tunnels.set(tunnel, { backend, context: { kind, at: clock.now(), auditId } });
    const stopWatching = this.#parts.watchTunnel({ down, up, backend }, (reason) => tunnel.cut(reason));
  }

  /** Sends a response, after which the socket closes. Whatever the client still sends is discarded. */
  #refuse(socket: Socket, { method, ...names }: Requester, failure: Failure): void {
    const { code, origin, message } = failure;
    // A limit journals its refusals itself.
    if (code !== "limited")
      this.#parts.journal.write({ kind: "request.failed", code, origin, message, ...names });
    if (socket.writable) {
      const { status, fields, body } = localReplyTo(method, failure);
      socket.write(
        writeHead([`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}`], fields, ["connection: close"]),
      );
      socket.end(body);
    }
    closeAfterFlush(socket, this.#parts.clock);
  }
}

/** What a tunnel keeps of its request. `auditId` is "" if the request could not be parsed. */
type Requester = Omit<RequestNames, "user"> & { readonly method: string };
