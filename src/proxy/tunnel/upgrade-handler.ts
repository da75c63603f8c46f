/**
 * Step 6 of 7 for an Upgrade (SPDY/3.1 and websocket: exec, attach, port-forward): who asks, on which backend, and
 * then a tunnel for as long as both sockets live. Silence is not illness: there is no idle timer here (D7); a tunnel
 * shares its backend's fate, for a socket without PING cannot prove anything itself (D6).
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
import type { Vouched, VouchedTrust } from "../identity/client-identity.ts";
import { closeAfterFlush } from "../net/close-after-flush.ts";
import type { Sheddable } from "../overload/heap-pressure.ts";
import type { OnHung } from "./stuck-sockets.ts";
import { Tunnel, type TunnelParts } from "./upgrade-tunnel.ts";

/** A socket to a backend: HTTP/1.1, ready, with keepalive. */
export type Dialed = {
  readonly socket: Socket;
  readonly backend: string;
  /** Calls once when the backend is proven dead; returns its undoing. */
  onDead(run: () => void): () => void;
};

export type UpgradeParts = {
  readonly identify: (
    request: RequestHead,
    client: Client,
  ) =>
    | {
        readonly fields: readonly Field[];
        readonly auditId: string;
        readonly vouched?: Vouched | undefined;
      }
    | Failure;
  /** Asks another backend by itself while nothing has been sent; `trust`: under which credential of ours. */
  readonly dialUpgrade: (client: Client, trust: VouchedTrust | undefined) => Promise<Dialed | Failure>;
  readonly sendLocalReply: (side: StreamWriter, method: string, failure: Failure) => void;
  readonly onHung: OnHung;
  readonly clock: Clock;
  readonly journal: Journal;
};

/** All Upgrades of this process. */
export class UpgradeHandler {
  readonly #parts: UpgradeParts;
  /** With the backend that each is on, and what was asked for. */
  readonly #tunnels = new Map<Tunnel, { readonly backend: string; readonly context: Sheddable["context"] }>();

  constructor(parts: UpgradeParts) {
    this.#parts = parts;
  }

  /** Tunnels that are open, or asking for it. */
  get openCount(): number {
    return this.#tunnels.size;
  }

  openOn(backend: string): number {
    let count = 0;
    for (const each of this.#tunnels.values()) if (each.backend === backend) count += 1;
    return count;
  }

  /** A copy, for whoever must end some of them. */
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

  /** Ends them all: the drain's last act. */
  cut(): void {
    for (const tunnel of this.#tunnels.keys()) tunnel.cut("draining");
  }

  /** Takes the socket over; `early` is what came behind the request. */
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
    const open = (dialed: Dialed): void => {
      const parts = { down: socket, up: dialed.socket, head: writeUpgrade(head, upgrades) };
      this.#open({ ...parts, upgrades, early, isWatch }, dialed, asker);
    };
    this.#parts
      .dialUpgrade(client, identified.vouched?.trust)
      .then((dialed) => (dialed instanceof Failure ? refuse(dialed) : open(dialed)))
      .catch((reason: unknown) => refuse(failureFrom(reason, "proxy")));
  }

  /** Lives as long as its tunnel: made here, it holds on to nothing else of the request (A26). */
  #askerOf(socket: Socket, { address }: Client, asked: Asked): Asker {
    const refuse = (failure: Failure): void => this.#refuse(socket, asked, failure);
    return { client: address, auditId: asked.auditId, refuse };
  }

  #open(parts: TunnelParts, dialed: Dialed, asker: Asker): void {
    const { down, up } = parts;
    if (down.destroyed || down.readableEnded) {
      up.destroy();
      down.destroy();
      return;
    }
    const { client, auditId, refuse } = asker;
    const names = { client, backend: dialed.backend, auditId };
    const { clock, journal } = this.#parts;
    const end = (): void => {
      this.#tunnels.delete(tunnel);
      stopDead();
      stopHung();
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
    this.#tunnels.set(tunnel, { backend: dialed.backend, context: { kind, at: clock.now(), auditId } });
    const stopDead = dialed.onDead(() => tunnel.cut("backend dead"));
    const stopHung = this.#parts.onHung({ down, up, backend: dialed.backend }, () =>
      tunnel.cut("nothing gets through on its connection"),
    );
  }

  /** The last answer on its socket, whose further octets nobody will read. */
  #refuse(socket: Socket, { method, auditId }: Asked, failure: Failure): void {
    const { code, origin, message } = failure;
    this.#parts.journal.write({ kind: "request.failed", code, origin, message, auditId });
    if (socket.writable) socket.end(rawAnswer((side) => this.#parts.sendLocalReply(side, method, failure)));
    closeAfterFlush(socket, this.#parts.clock);
  }
}

/** What was refused; `auditId` is "" when it was not even understood. */
type Asked = { readonly method: string; readonly auditId: string };

/** Whom a tunnel is for, and how to answer when there will be none. */
type Asker = {
  readonly client: string;
  readonly auditId: string;
  readonly refuse: (failure: Failure) => void;
};
