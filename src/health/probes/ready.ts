/**
 * Probes one backend's /readyz on a new socket, because an open socket would not show that a firewall rejects new ones.
 * The prober sets all deadlines. The request has a padding header, and the response lists all checks, so request and
 * response each take a large packet. Therefore the probe also fails if the path loses large packets (path MTU) but the
 * TLS handshake has succeeded.
 */
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { clipped } from "../../base/detach.ts";
import { isShortage, metOf } from "../../base/failure.ts";
import { isRecord, parseJson, textAt } from "../../base/json.ts";
import { limits } from "../../base/limits.ts";
import type { BackendVersions } from "../backend-versions.ts";
import type { ReadyAnswer } from "../evidence.ts";
import { healthLimits } from "../limits.ts";
import type { Probe, ProbeListener } from "../prober.ts";
import type { KeptSocket } from "../small-packets.ts";
import { answerOf, SocketAgent, type SocketResponse } from "./socket-request.ts";

export type ReadyParts = {
  readonly open: (backend: string) => Socket;
  /** Returns the path below which the apiserver is served; default: at the root. */
  readonly prefix?: () => string;
  /** Returns the path of the probe. Called for each probe, because a reload may change the path. */
  readonly path: () => string;
  readonly seen: (backend: string, notAfter: string) => void;
  /** If set, the probe also requests each backend's version. */
  readonly versions?: BackendVersions;
};

/**
 * Returns the probe that requests `parts.path`, and also /livez if the response reports a failure but names no failing
 * check.
 */
export function createReadyProbe(parts: ReadyParts): Probe {
  return (backend, listener) => {
    const socket = parts.open(backend);
    let isKept = false;
    const fail = (reason: Error): void => {
      if (isShortage(reason)) return listener.gaveUp();
      parts.versions?.expire(backend);
      listener.dialed(metOf(reason), reason.message);
    };
    socket.once("error", fail);
    if (socket instanceof TLSSocket) socket.once("connect", () => listener.connected());
    socket.once(socket instanceof TLSSocket ? "secureConnect" : "connect", () => {
      socket.off("error", fail);
      socket.on("error", () => {});
      const certificate = socket instanceof TLSSocket ? socket.getPeerX509Certificate() : undefined;
      if (certificate !== undefined) parts.seen(backend, certificate.validTo);
      listener.dialed("answer", "");
      const agent = new SocketAgent(socket, parts.prefix?.());
      void ask(socket, agent, parts.path(), {
        ...listener,
        answered(readiness, reason, kept) {
          isKept = kept !== undefined;
          listener.answered(readiness, reason, kept);
        },
      });
      if (parts.versions?.takeDue(backend) !== true) return;
      const other = parts.open(backend);
      askVersion(other, new SocketAgent(other, agent.prefix), (version) =>
        parts.versions?.reported(backend, version),
      );
    });
    return () => {
      socket.on("error", () => {});
      if (!isKept) socket.destroy();
    };
  };
}

/**
 * Requests /version on another socket, so that a slow response does not delay the probe. Every client may read /version
 * (ClusterRole `system:public-info-viewer`). If the apiserver refuses anonymous requests, the version stays unknown.
 */
function askVersion(socket: Socket, agent: SocketAgent, report: (version: string) => void): void {
  socket.on("error", () => {});
  socket.setTimeout(limits.dialMs, () => socket.destroy());
  socket.once(socket instanceof TLSSocket ? "secureConnect" : "connect", () => {
    answerOf(agent, "/version")
      .then((response) => report(versionIn(response)))
      .catch(() => {})
      .finally(() => socket.destroy());
  });
}

function versionIn({ status, body }: SocketResponse): string {
  const json = status === 200 ? parseJson(body) : undefined;
  const version = isRecord(json) ? textAt(json, "gitVersion") : "";
  return /^v\d[\w.+-]*$/.test(version) ? clipped(version, healthLimits.versionChars) : "";
}

/** The returned promise is never rejected. The socket is kept if it has carried a whole response. */
async function ask(socket: Socket, agent: SocketAgent, path: string, listener: ProbeListener): Promise<void> {
  try {
    const answer = await answerOf(agent, verbose(path), { fields: [["x-padding", padding]] });
    const readiness = readinessOf(answer);
    const isUnnamed = readiness === "failing" && failingChecks(answer.body) === "";
    const reason = isUnnamed ? `${reasonOf(answer)}; ${await alive(agent)}` : reasonOf(answer);
    listener.answered(readiness, reason, keptSocket(socket, agent));
  } catch (reason) {
    socket.destroy();
    // The backend accepted the connection but sent no HTTP response, so it is alive but not ready.
    listener.answered("failing", reason instanceof Error ? reason.message : "broken off");
  }
}

/**
 * Returns the socket in a form that sends small requests, here for /livez. The response fits in a small packet,
 * whatever its status: an apiserver sends 400 bytes.
 */
function keptSocket(socket: Socket, agent: SocketAgent): KeptSocket {
  return {
    ask: (answered) => void answerOf(agent, "/livez").then(answered, () => {}),
    close: () => socket.destroy(),
  };
}

async function alive(agent: SocketAgent): Promise<string> {
  const answer = await answerOf(agent, "/livez?verbose");
  return `/livez: ${failingChecks(answer.body) || answer.status}`;
}

const padding = "0".repeat(1500);

/** Adds `verbose` to the path, because the apiserver then answers with the list of all checks. */
function verbose(path: string): string {
  if (/[?&]verbose\b/.test(path)) return path;
  return `${path}${path.includes("?") ? "&" : "?"}verbose`;
}

function readinessOf({ status, body }: SocketResponse): ReadyAnswer {
  if (status === 200) return "ready";
  if (status === 403) return "forbidden";
  if (status < 500) return "unknown";
  // "shutdown" is the first check that fails when an apiserver shuts down.
  return /^\[-\]shutdown /m.test(body) ? "shutdown" : "failing";
}

function reasonOf({ status, body }: SocketResponse): string {
  const checks = failingChecks(body);
  return checks === "" ? `status ${status}` : `status ${status}, failing: ${checks}`;
}

/**
 * Returns the names of a few failing checks: "etcd" for "[-]etcd failed: reason withheld". The text may come from any
 * server, so only short names are taken.
 */
function failingChecks(body: string): string {
  const names = [...body.matchAll(/^\[-\]([\w./-]{1,64}) /gm)].map((match) => match[1] ?? "");
  return names.slice(0, healthLimits.probeChecks).join(", ");
}
