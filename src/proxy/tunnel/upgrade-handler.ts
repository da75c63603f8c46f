/**
 * Handles an Upgrade (SPDY/3.1 and websocket: exec, attach, port-forward): identifies the client, dials a backend, and
 * joins both sockets in a tunnel for as long as both are open. Silence is no fault, so there is no idle
 * timer (D7). A socket without PING cannot prove anything itself, so a tunnel uses its backend's verdict (D6).
 */
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Clock } from "../../base/clock.ts";
import { Failure, failureFrom } from "../../base/failure.ts";
import type { Journal } from "../../events/journal.ts";
import type { Field } from "../../h2/core/field.ts";
import type { RequestHead } from "../../h2/core/fields.ts";
import type { StreamWriter } from "../../h2/core/stream-writer.ts";
import { classify } from "../../kube/request-info.ts";
import type { Client } from "../context/client.ts";
import { writeUpgrade } from "../h1/h1-head.ts";
import { rawAnswer } from "../h1/h1-refusal.ts";
import { headOf, readUpgrade } from "../h1/h1-request.ts";
import type { Asserted, AssertedTrust } from "../identity/client-identity.ts";
import { closeAfterFlush } from "../net/socket-end.ts";
import type { Sheddable } from "../overload/heap-pressure.ts";
import type { Reached } from "./dial-through.ts";
import type { WatchTunnel } from "./stuck-sockets.ts";
import { Tunnel, type TunnelParts } from "./upgrade-tunnel.ts";

export type UpgradeParts = {
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
  /** Tries other backends by itself while nothing has been sent; `trust`: the proxy's own credential to use. */
  readonly dialUpgrade: (client: Client, trust: AssertedTrust | undefined) => Promise<Reached | Failure>;
  readonly sendLocalReply: (side: StreamWriter, method: string, failure: Failure) => void;
  readonly watchTunnel: WatchTunnel;
  readonly clock: Clock;
  readonly journal: Journal;
};

/** All Upgrades of one cluster. */
export class UpgradeHandler {
  readonly #parts: UpgradeParts;
  /** With the backend of each, and its request. */
  readonly #tunnels = new Map<Tunnel, { readonly backend: string; readonly context: Sheddable["context"] }>();

  constructor(parts: UpgradeParts) {
    this.#parts = parts;
  }

  /** The number of tunnels that are open or being opened. */
  get openCount(): number {
    return this.#tunnels.size;
  }

  openOn(backend: string): number {
    let count = 0;
    for (const each of this.#tunnels.values()) if (each.backend === backend) count += 1;
    return count;
  }

  /** A copy: its entries may end during the iteration. */
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

  /** Ends all of them: the drain's last step. */
  cut(): void {
    for (const tunnel of this.#tunnels.keys()) tunnel.cut("draining");
  }

  /** Takes the socket over; `early` is what came behind the request's head. */
  upgrade(request: IncomingMessage, socket: Socket, early: Buffer, client: Client): void {
    const { method = "" } = request;
    const refuseNameless = (failure: Failure): void => this.#refuse(socket, { method, auditId: "" }, failure);
    const asked = readUpgrade(headOf(request, client.isTls));
    if (typeof asked === "string") return refuseNameless(new Failure("bad-request", "client", asked));
    const identified = this.#parts.identify(asked.head, client);
    if (identified instanceof Failure) return refuseNameless(identified);
    const asker = this.#askerOf(socket, client, { method, auditId: identified.auditId });
    const { refuse } = asker;
    const head = { ...asked.head, fields: identified.fields };
    const { upgrades } = asked;
    const isWatch = classify(head.method, head.path).kind === "watch";
    const open = (dialed: Reached): void => {
      const parts = { down: socket, up: dialed.socket, head: writeUpgrade(head, upgrades) };
      this.#open({ ...parts, upgrades, early, isWatch }, dialed, asker);
    };
    this.#parts
      .dialUpgrade(client, identified.asserted?.trust)
      .then((dialed) => (dialed instanceof Failure ? refuse(dialed) : open(dialed)))
      .catch((reason: unknown) => refuse(failureFrom(reason, "proxy")));
  }

  /**
   * Lives as long as its tunnel. Made in a method of its own, so that its closure keeps nothing else of the request
   * (A26).
   */
  #askerOf(socket: Socket, { address }: Client, asked: Asked): Asker {
    const refuse = (failure: Failure): void => this.#refuse(socket, asked, failure);
    return { client: address, auditId: asked.auditId, refuse };
  }

  #open(parts: TunnelParts, { backend }: Reached, asker: Asker): void {
    const { down, up } = parts;
    if (down.destroyed || down.readableEnded) {
      up.destroy();
      down.destroy();
      return;
    }
    const { client, auditId, refuse } = asker;
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
        refuse(failure);
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

  /** Sends the last response on its socket; further octets of the client are discarded. */
  #refuse(socket: Socket, { method, auditId }: Asked, failure: Failure): void {
    const { code, origin, message } = failure;
    this.#parts.journal.write({ kind: "request.failed", code, origin, message, auditId });
    if (socket.writable) socket.end(rawAnswer((side) => this.#parts.sendLocalReply(side, method, failure)));
    closeAfterFlush(socket, this.#parts.clock);
  }
}

/** The refused request; `auditId` is "" if it could not be parsed. */
type Asked = { readonly method: string; readonly auditId: string };

/** The client of a tunnel, and how to answer if there will be none. */
type Asker = {
  readonly client: string;
  readonly auditId: string;
  readonly refuse: (failure: Failure) => void;
};
