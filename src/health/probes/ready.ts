/**
 * Probes one backend's /readyz on a socket of its own: a reused one cannot detect a firewall. The caller opens the
 * socket with the right address and CA. undici speaks HTTP on it, without its timers: they are coarse and do not run
 * while a socket opens. The prober sets all deadlines.
 *
 * Request and response each take a packet as large as the path allows: the list of all checks exceeds 1.5 KiB, and a
 * padding field has the same size. A path that loses large packets (path MTU) is therefore detected even if the TLS
 * handshake passes.
 */
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { Client } from "undici";
import { isShortage, metOf } from "../../base/failure.ts";
import type { ReadyAnswer } from "../evidence.ts";
import { healthLimits } from "../limits.ts";
import type { Probe, ProbeEar } from "../prober.ts";

export type ReadyParts = {
  /** Opens a socket for HTTP/1.1. */
  readonly open: (backend: string) => Socket;
  readonly path: string;
  /** The certificate that the backend presented expires then. */
  readonly seen: (backend: string, notAfter: string) => void;
};

/** Returns the probe that requests `path`, and /livez if that fails without a reason. */
export function createReadyProbe(parts: ReadyParts): Probe {
  return (backend, ear) => {
    const socket = parts.open(backend);
    const fail = (reason: Error): void =>
      isShortage(reason) ? ear.gaveUp() : ear.dialed(metOf(reason), reason.message);
    socket.once("error", fail);
    if (socket instanceof TLSSocket) socket.once("connect", () => ear.connected());
    socket.once(socket instanceof TLSSocket ? "secureConnect" : "connect", () => {
      socket.off("error", fail);
      socket.on("error", () => {});
      const certificate = socket instanceof TLSSocket ? socket.getPeerX509Certificate() : undefined;
      if (certificate !== undefined) parts.seen(backend, certificate.validTo);
      ear.dialed("answer", "");
      void ask(socket, parts.path, ear);
    });
    return () => {
      socket.on("error", () => {});
      socket.destroy();
    };
  };
}

type Answer = { readonly status: number; readonly body: string };

/** Never rejects. */
async function ask(socket: Socket, path: string, ear: ProbeEar): Promise<void> {
  const client = new Client(socket instanceof TLSSocket ? "https://backend" : "http://backend", {
    // Deferred, because undici checks its queue only after `connect` returns and would otherwise wait for ever.
    connect: (_options, done) => queueMicrotask(() => done(null, socket)),
    headersTimeout: 0,
    bodyTimeout: 0,
    maxHeaderSize: healthLimits.probeHeadBytes,
  });
  try {
    const answer = await answerOf(client, verbose(path), { "x-padding": padding });
    const readiness = readinessOf(answer);
    const isUnnamed = readiness === "failing" && failingChecks(answer.body) === "";
    ear.answered(readiness, isUnnamed ? `${reasonOf(answer)}; ${await alive(client)}` : reasonOf(answer));
  } catch (reason) {
    // It was reached and sent nothing readable: alive, and not ready.
    ear.answered("failing", reason instanceof Error ? reason.message : "broken off");
  } finally {
    client.destroy(() => socket.destroy());
  }
}

/** Returns which of its own checks fail, if /readyz did not say. */
async function alive(client: Client): Promise<string> {
  const answer = await answerOf(client, "/livez?verbose");
  return `/livez: ${failingChecks(answer.body) || answer.status}`;
}

/** More than an Ethernet packet carries. */
const padding = "0".repeat(1500);

/** The apiserver ignores the query except for this word, which makes it answer with the list of all checks. */
function verbose(path: string): string {
  if (/[?&]verbose\b/.test(path)) return path;
  return `${path}${path.includes("?") ? "&" : "?"}verbose`;
}

async function answerOf(
  client: Client,
  path: string,
  fields: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const headers = { "user-agent": "watchkeeper-probe", accept: "*/*", ...fields };
  const { statusCode, body } = await client.request({ method: "GET", path, headers });
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > healthLimits.probeBodyBytes) break;
  }
  return { status: statusCode, body: Buffer.concat(chunks).toString("utf8", 0, healthLimits.probeBodyBytes) };
}

/** A backend that refuses the request (401, 404, 429) is alive; its readiness is unknown. */
function readinessOf({ status, body }: Answer): ReadyAnswer {
  if (status === 200) return "ready";
  if (status === 403) return "forbidden";
  if (status < 500) return "unknown";
  // The check that an apiserver fails first when it shuts down.
  return /^\[-\]shutdown /m.test(body) ? "shutdown" : "failing";
}

function reasonOf({ status, body }: Answer): string {
  const checks = failingChecks(body);
  return checks === "" ? `status ${status}` : `status ${status}, failing: ${checks}`;
}

/** "[-]etcd failed: reason withheld" → "etcd", at most a few of them; the response is untrusted text. */
function failingChecks(body: string): string {
  const names = [...body.matchAll(/^\[-\]([\w./-]{1,64}) /gm)].map((match) => match[1] ?? "");
  return names.slice(0, healthLimits.probeChecks).join(", ");
}
