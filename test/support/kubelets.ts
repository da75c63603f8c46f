/**
 * Clients with short-lived certificates, as kubelets have them. Each keeps a watch open, sends requests all the time,
 * and renews its certificate before it expires. A kubelet then closes its connections (certificate_manager.go). A
 * controller that reads its certificate from a file keeps its connection, and presents the new certificate on the next
 * one.
 */
import { X509Certificate } from "node:crypto";
import http2 from "node:http2";
import tls from "node:tls";

/** PEM texts. */
export type OwnPair = { readonly certificate: string; readonly key: string };

export type KubeletOptions = {
  readonly name: string;
  readonly port: number;
  readonly ca: string;
  readonly serverName: string;
  readonly paths: { readonly get: string; readonly watch: string };
  readonly lifeMs: number;
  /** Issues a certificate that expires after `lifeMs`. */
  readonly issue: (name: string) => OwnPair;
  readonly everyMs: number;
  /**
   * "kubelet" renews its certificate after 70 to 90 % of the lifetime, and then reopens all connections. "controller"
   * renews it after about half of the lifetime, and keeps its connection.
   */
  readonly kind: "kubelet" | "controller";
  readonly random: () => number;
};

/** What all these clients noticed. */
export type Felt = {
  readonly statuses: Map<string, number>;
  certificates: number;
  connections: number;
  /** Number of GOAWAYs received. */
  sentAway: number;
  events: number;
  /** Number of watches that the client did not end itself, by the way they ended. */
  readonly watchEnds: Map<string, number>;
  /** Number of streams that the server refused before processing. client-go retries these itself. */
  resent: number;
  /**
   * Number of 401 responses to an expired certificate. The machine was then too slow for the client to renew it in
   * time.
   */
  late: number;
};

export function newFelt(): Felt {
  return {
    statuses: new Map(),
    certificates: 0,
    connections: 0,
    sentAway: 0,
    events: 0,
    watchEnds: new Map(),
    resent: 0,
    late: 0,
  };
}

const refusedStream = http2.constants.NGHTTP2_REFUSED_STREAM;

export class Kubelet {
  readonly #options: KubeletOptions;
  readonly #felt: Felt;
  #pair: OwnPair;
  #session: http2.ClientHttp2Session | undefined;
  readonly #sessions = new Set<http2.ClientHttp2Session>();
  /** For each session when the certificate of its handshake expires. */
  readonly #ends = new WeakMap<http2.ClientHttp2Session, number>();
  /** Sessions that the client closed itself. */
  readonly #left = new WeakSet<http2.ClientHttp2Session>();
  #asking: ReturnType<typeof setTimeout> | undefined;
  #rotation: ReturnType<typeof setTimeout> | undefined;
  #isStopped = false;

  constructor(options: KubeletOptions, felt: Felt) {
    this.#options = options;
    this.#felt = felt;
    this.#pair = this.#renewed();
    this.#ask();
    this.#watch();
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#asking);
    clearTimeout(this.#rotation);
    for (const session of this.#sessions) session.destroy();
  }

  #renewed(): OwnPair {
    const { issue, name, lifeMs, kind, random } = this.#options;
    this.#felt.certificates += 1;
    const share = kind === "kubelet" ? 0.7 + 0.2 * random() : 0.45 + 0.1 * random();
    this.#rotation = setTimeout(() => this.#rotate(), lifeMs * share);
    return issue(name);
  }

  #rotate(): void {
    this.#pair = this.#renewed();
    if (this.#options.kind === "controller") return;
    const watching = Array.from(this.#sessions);
    this.#session = undefined;
    for (const session of watching) {
      this.#left.add(session);
      session.destroy();
    }
    // Reopens the watch, which the client itself has just closed with its session.
    this.#watch();
  }

  #connected(): http2.ClientHttp2Session {
    const known = this.#session;
    if (known !== undefined && !known.closed && !known.destroyed) return known;
    const { port, ca, serverName } = this.#options;
    const own = { cert: this.#pair.certificate, key: this.#pair.key };
    const where = { host: "127.0.0.1", port, servername: serverName };
    const session = http2.connect(`https://${serverName}:${port}`, {
      createConnection: () => tls.connect({ ...where, ca, ALPNProtocols: ["h2"], ...own }),
    });
    this.#felt.connections += 1;
    this.#ends.set(session, new X509Certificate(this.#pair.certificate).validToDate.getTime());
    session.on("error", (error) => this.#count(`error: ${error.message}`));
    session.on("goaway", () => {
      this.#felt.sentAway += 1;
    });
    session.on("close", () => this.#sessions.delete(session));
    this.#sessions.add(session);
    this.#session = session;
    return session;
  }

  #count(what: string): void {
    if (!this.#isStopped) this.#felt.statuses.set(what, (this.#felt.statuses.get(what) ?? 0) + 1);
  }

  /**
   * Counts a response. A 401 is the client's own fault if its certificate has expired, because the client renewed it
   * too late; it is then counted in `late`.
   */
  #told(session: http2.ClientHttp2Session, what: string): void {
    const isDue = what.startsWith("401") && Date.now() >= (this.#ends.get(session) ?? 0);
    if (isDue && !this.#isStopped) this.#felt.late += 1;
    else this.#count(what);
  }

  #ask(): void {
    const { everyMs, random } = this.#options;
    this.#asking = setTimeout(() => this.#ask(), everyMs * (0.5 + random()));
    this.#get(2);
  }

  #get(tries: number): void {
    const session = this.#connected();
    const stream = session.request({ ":path": this.#options.paths.get });
    let status = "";
    stream.on("response", (head) => {
      status = String(head[":status"]);
    });
    stream.on("error", () => {});
    let body = "";
    stream.on("data", (chunk: Buffer) => {
      body += body.length < 200 ? chunk.toString() : "";
    });
    stream.on("close", () => {
      if (stream.rstCode === refusedStream && tries > 1) {
        this.#felt.resent += 1;
        this.#get(tries - 1);
      } else if (status === "" && this.#left.has(session)) {
        // The client itself closed this connection when it renewed its certificate, so this is no error.
      } else this.#told(session, stream.rstCode === 0 ? statusOf(status, body) : `reset ${stream.rstCode}`);
    });
  }

  #watch(): void {
    if (this.#isStopped) return;
    const session = this.#connected();
    const stream = session.request({ ":path": this.#options.paths.watch });
    stream.on("response", (head) => {
      if (head[":status"] !== 200) this.#told(session, `${head[":status"]} to a watch`);
    });
    stream.on("data", (chunk: Buffer) => {
      this.#felt.events += chunk.toString().split("\n").length - 1;
    });
    stream.on("error", () => {});
    stream.on("close", () => {
      if (this.#isStopped || this.#left.has(session)) return;
      const how = stream.rstCode === 0 ? "ended" : `reset ${stream.rstCode}`;
      this.#felt.watchEnds.set(how, (this.#felt.watchEnds.get(how) ?? 0) + 1);
      setTimeout(() => this.#watch(), 1000);
    });
  }
}

/** Returns the status; anything but a 200 is followed by the body, which states the reason. */
function statusOf(status: string, body: string): string {
  return status === "200" ? status : `${status} ${body}`;
}

/** Returns all counts as one line, for a figure of the test. */
export function toldOf(felt: Felt): string {
  const { statuses, watchEnds, ...counts } = felt;
  return JSON.stringify({
    ...counts,
    statuses: Object.fromEntries(statuses),
    watchEnds: Object.fromEntries(watchEnds),
  });
}
