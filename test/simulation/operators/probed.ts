/**
 * What the proxy itself asks an apiserver on sockets of its own: /readyz, the canaries, and the handshakes that test CAs
 * and certificates. A real TLS server answers them, in the state of the simulated apiserver.
 */
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import https from "node:https";
import net from "node:net";
import { TLSSocket } from "node:tls";
import type { Pair } from "../../../src/ops/pki/pki.ts";
import { answerCanary, canaryPath } from "../../support/canary.ts";
import { commonNameOn } from "../../support/front-proxy.ts";
import type { SimulatedApiserver } from "../watches/apiserver.ts";

export type ProbedParts = {
  readonly apiserver: SimulatedApiserver;
  readonly serving: Pair;
  /** The CAs of the certificates that the apiserver accepts, in PEM. */
  readonly clientCas: readonly string[];
};

export class Probed {
  readonly #parts: ProbedParts;
  readonly #https: https.Server;
  readonly #server: net.Server;
  readonly #sockets = new Set<net.Socket>();
  /** Connections that came while packets were dropped or the process was stopped. */
  readonly #held = new Set<net.Socket>();
  /** True while its --requestheader-* flags no longer name the proxy's certificate. */
  isDrifted = false;

  constructor(parts: ProbedParts) {
    this.#parts = parts;
    const { serving, clientCas } = parts;
    const options = { cert: serving.certificate, key: serving.key, ca: [...clientCas] };
    this.#https = https.createServer(
      { ...options, requestCert: true, rejectUnauthorized: false },
      (request, response) => this.#answer(request, response),
    );
    this.#https.on("tlsClientError", () => {});
    this.#server = net.createServer((socket) => this.#accept(socket));
  }

  async listen(): Promise<number> {
    this.#server.listen(0, "127.0.0.1").unref();
    await once(this.#server, "listening");
    return this.port;
  }

  get port(): number {
    const address = this.#server.address();
    return typeof address === "object" && address !== null ? address.port : 0;
  }

  /** True if it answers everything that it is asked. */
  get answers(): boolean {
    return !this.#isSilent && this.#parts.apiserver.readiness !== undefined;
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }

  /** Closes what the state of the apiserver does not allow any more. */
  look(): void {
    const { host } = this.#parts.apiserver;
    if (host.isDown) for (const socket of this.#sockets) socket.destroy();
    if (this.#isSilent) return;
    for (const socket of this.#held) socket.destroy();
    this.#held.clear();
  }

  get #isSilent(): boolean {
    const { isFrozen, dropsIn, dropsOut } = this.#parts.apiserver.host;
    return isFrozen || dropsIn || dropsOut;
  }

  #accept(socket: net.Socket): void {
    this.#sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => this.#sockets.delete(socket));
    if (this.#parts.apiserver.host.isDown) socket.resetAndDestroy();
    else if (this.#isSilent) this.#held.add(socket);
    else this.#https.emit("connection", socket);
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const { apiserver } = this.#parts;
    request.resume();
    request.on("end", () => {
      if (apiserver.host.isDown || this.#isSilent) return;
      if (request.url === canaryPath) return this.#answerCanary(request, response);
      const { readiness } = apiserver;
      if (request.url?.startsWith("/version") === true) response.end('{"gitVersion":"v1.36.1"}');
      else if (readiness === "ready") response.end("ok");
      else if (readiness === "failing") response.writeHead(500).end("[-]informer-sync failed");
    });
  }

  #answerCanary({ socket, rawHeaders }: IncomingMessage, response: ServerResponse): void {
    const name = commonNameOn(socket);
    const isValid = socket instanceof TLSSocket && socket.authorized;
    answerCanary(response, { name, isValid }, rawHeaders, this.isDrifted ? "drifted" : "takes");
  }
}
