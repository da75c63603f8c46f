/** Idle exec and port-forward sessions over websockets: whether they are still open, and when they ended. */
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { within } from "../../support/within.ts";
import type { Server } from "../rig/ask.ts";

export type TunnelKind = "exec" | "port-forward";

const forms = {
  exec: {
    path: "exec?command=cat&stdin=true&stdout=true",
    protocol: "v5.channel.k8s.io",
    inward: 0,
    outward: 1,
  },
  "port-forward": { path: "portforward?ports=80", protocol: "v4.channel.k8s.io", inward: 0, outward: 0 },
} as const;

export class Tunnel {
  readonly kind: TunnelKind;
  /** Identifies the session in the proxy's log. */
  readonly auditId = randomUUID();
  /** Unix milliseconds. NaN while the session is open. */
  endedAt = Number.NaN;
  readonly #socket: WebSocket;
  readonly #form: (typeof forms)[TunnelKind];
  #heard = "";

  private constructor(server: Server, kind: TunnelKind, pod: string) {
    this.kind = kind;
    this.#form = forms[kind];
    const url = `${server.url.replace("https", "wss")}${pod}/${this.#form.path}`;
    const headers = { authorization: `Bearer ${server.token}`, "audit-id": this.auditId };
    this.#socket = new WebSocket(url, { protocols: [this.#form.protocol], headers });
    this.#socket.binaryType = "arraybuffer";
    this.#socket.addEventListener("message", ({ data }) => this.#take(Buffer.from(data as ArrayBuffer)));
    this.#socket.addEventListener("error", () => undefined); // close follows
    this.#socket.addEventListener("close", () => (this.endedAt = Date.now()));
  }

  /** `pod` is the pod's path in the API. Rejects if the session is refused. */
  static async open(server: Server, kind: TunnelKind, pod: string): Promise<Tunnel> {
    trust(server.caFile);
    const tunnel = new Tunnel(server, kind, pod);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    tunnel.#socket.addEventListener("open", () => resolve());
    tunnel.#socket.addEventListener("close", () => reject(new Error(`${kind} refused`)));
    await within(10_000, `${kind} to open`, promise);
    return tunnel;
  }

  get isOpen(): boolean {
    return Number.isNaN(this.endedAt);
  }

  /** The first byte of a message names its channel. */
  #take(message: Buffer): void {
    if (message[0] === this.#form.outward) this.#heard += message.subarray(1).toString("latin1");
  }

  say(text: string): void {
    if (this.isOpen) this.#socket.send(Buffer.concat([Buffer.of(this.#form.inward), Buffer.from(text)]));
  }

  /** True if the session carries a line to the pod and back. */
  async answers(timeoutMs = 15_000): Promise<boolean> {
    const line = `${randomUUID()}\n`;
    this.say(line);
    const deadline = Date.now() + timeoutMs;
    while (this.isOpen && Date.now() < deadline) {
      if (this.#heard.includes(line)) return true;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return false;
  }

  close(): void {
    this.#socket.close();
  }
}

let trusted = "";

/** Makes the process trust the rig's CA, because Node's WebSocket has no option for one. */
function trust(caFile: string): void {
  if (trusted === caFile) return;
  trusted = caFile;
  setDefaultCACertificates([...getCACertificates("default"), readFileSync(caFile, "utf8")]);
}
