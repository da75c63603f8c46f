/** Sends one request over each protocol that a TLS listener accepts: HTTP/2, HTTP/1.1, and an Upgrade of HTTP/1.1. */
import type { Pair } from "../../src/ops/pki/pki.ts";
import { shake } from "./front-proxy.ts";
import { type Fields, headers, preface, settings, wire } from "./h2-frames.ts";
import { RawPeer } from "./raw.ts";
import { RawH2 } from "./raw-h2.ts";
import type { Shown } from "./target.ts";

export type Way = "h2" | "h1" | "Upgrade";
export const ways: readonly Way[] = ["h2", "h1", "Upgrade"];

export type AskedFor = {
  readonly port: number;
  readonly ca: string;
  readonly pair?: Pair | undefined;
  /** `servername` is the SNI name of the handshake, `authority` the host of the request. */
  readonly servername?: string;
  readonly authority?: string;
  readonly path?: string;
  /** Over HTTP/2 the names are sent in lower case. */
  readonly fields?: Fields;
};

/** `shown` is the certificate and the fields that the target received; undefined if the request did not reach it. */
export type Told = { readonly status: number; readonly shown: Shown | undefined; readonly text: string };

/** Opens a TLS connection to the proxy, and resolves after the handshake. */
export function socketFor(asked: AskedFor, alpn: "h2" | "http/1.1"): ReturnType<typeof shake> {
  const { port, ca, pair, servername = "localhost" } = asked;
  const own = pair === undefined ? {} : { cert: pair.certificate, key: pair.key };
  return shake({ port, ca, servername, ALPNProtocols: [alpn], ...own });
}

/** Opens an HTTP/2 client with its own certificate. */
export async function rawH2For(asked: AskedFor): Promise<RawH2> {
  const client = new RawH2(await socketFor(asked, "h2"));
  client.sendBytes(Buffer.concat([Buffer.from(preface), wire(settings())]));
  return client;
}

/** Sends a request on a new connection. Status 0 means that the stream was reset. */
export function askBy(way: Way, asked: AskedFor): Promise<Told> {
  if (way === "h2") return askByH2(asked);
  return way === "h1" ? askByH1(asked) : askByUpgrade(asked);
}

async function askByH2(asked: AskedFor): Promise<Told> {
  const { authority = "localhost", path = "/who", fields = [] } = asked;
  const client = await rawH2For(asked);
  const head = [
    [":method", "GET"],
    [":scheme", "https"],
    [":path", path],
    [":authority", authority],
  ] as const;
  const own = fields.map(([name, value]) => [name.toLowerCase(), value] as const);
  client.send(headers(1).of([...head, ...own], "end"));
  await client.expect(/^RST_STREAM 1 |^(HEADERS|DATA) 1 .*END$/);
  client.destroy();
  const status = client.heard.map((line) => /^HEADERS 1 :status=(\d+)/.exec(line)?.[1]).find(Boolean);
  return told(Number(status ?? 0), client.texts.get(1) ?? "");
}

async function askByH1(asked: AskedFor): Promise<Told> {
  const { path = "/who" } = asked;
  const peer = await say(asked, `GET ${path} HTTP/1.1`, "Connection: close");
  const answer = await peer.ended();
  peer.socket.destroy();
  const text = answer.slice(answer.indexOf("\r\n\r\n") + 4);
  return told(statusIn(answer), text.slice(text.indexOf("{"), text.lastIndexOf("}") + 1));
}

async function askByUpgrade(asked: AskedFor): Promise<Told> {
  const { path = "/who" } = asked;
  const peer = await say(asked, `POST ${path} HTTP/1.1`, "Connection: Upgrade", "Upgrade: SPDY/3.1");
  const head = await peer.expect("\r\n\r\n");
  peer.socket.destroy();
  const shown = /^x-shown: (.*)\r$/im.exec(head)?.[1] ?? "";
  return told(statusIn(head), Buffer.from(shown, "base64").toString());
}

async function say(asked: AskedFor, line: string, ...more: readonly string[]): Promise<RawPeer> {
  const { authority = "localhost", fields = [] } = asked;
  const peer = new RawPeer(await socketFor(asked, "http/1.1"));
  const own = fields.map(([name, value]) => `${name}: ${value}`);
  peer.send([line, `Host: ${authority}`, ...own, ...more, "", ""].join("\r\n"));
  return peer;
}

function statusIn(answer: string): number {
  return Number(/^HTTP\/1.1 (\d+)/.exec(answer)?.[1] ?? 0);
}

function told(status: number, text: string): Told {
  const shown = text.startsWith('{"certificate"') ? (JSON.parse(text) as Shown) : undefined;
  return { status, shown, text };
}
