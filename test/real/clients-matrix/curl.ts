/** Debian's curl over HTTP/1.1 and HTTP/2. The status line and the header fields of each response are compared too. */
import * as assert from "uvu/assert";
import { eventsOf, type Operation, type Scene, watchedEvents } from "./operation.ts";

/**
 * Largest body, in bytes, for which Go's HTTP/1.1 server sets Content-Length itself. Apiservers use this server; for a
 * longer body, the handler must set the field.
 */
const knownLength = 2_048;

/** `Connection: keep-alive` means nothing in HTTP/1.1, where every connection is persistent by default. */
const isKept = /^connection: keep-alive$/i;

const varying = /^(audit-id|x-kubernetes-pf-\S+|date):.*/;

/**
 * Returns the response in the form in which it is compared: the order and the letter case of header names do not
 * matter, and some values vary.
 */
export function compared(response: string): string {
  const [status = "", ...headers] = headOf(response).split("\r\n");
  const told = headers
    .filter((line) => !isKept.test(line))
    .map((line) => line.replace(/^[^:]+/, (name) => name.toLowerCase()))
    .map((line) => line.replace(varying, "$1"))
    .map((line) => lengthTold(line, status, bodyOf(response)));
  return [status, ...told.toSorted(), bodyOf(response)].join("\n");
}

/**
 * Content-Length varies with the number of digits of a resource version, so it is compared with the body's length. A
 * long response over HTTP/1.1 has no Content-Length if it comes directly from an apiserver. Through the proxy it has
 * the one that the apiserver sends over HTTP/2.
 */
function lengthTold(line: string, status: string, body: string): string {
  const bytes = Buffer.byteLength(body);
  const isRight = bytes > 0 && line === `content-length: ${bytes}`;
  const isEither = status.startsWith("HTTP/1.1") && bytes > knownLength;
  if (isEither && (isRight || line === "transfer-encoding: chunked")) return "content-length, or chunked";
  return isRight ? "content-length: as the body" : line;
}

const blankLine = "\r\n\r\n";

function headOf(response: string): string {
  return response.slice(0, response.indexOf(blankLine));
}

function bodyOf(response: string): string {
  return response.slice(response.indexOf(blankLine) + blankLine.length);
}

/**
 * Throws an error if the response has another status. The error is no assertion, which would mean wrong data: the
 * failure of an apiserver during a write may explain the status (outcome.ts).
 */
export function hasStatus(response: string, status: number): void {
  const [, told] = /^HTTP\/\S+ (\d+)/.exec(response) ?? [];
  if (told !== String(status)) throw new Error(`Status ${told} instead of ${status}: ${response}`);
}

class Curl {
  readonly #scene: Scene;
  readonly #args: readonly string[];

  constructor(scene: Scene, version: string) {
    this.#scene = scene;
    const { caFile, token } = scene.server;
    this.#args = ["-sS", "-i", "-N", version, "--cacert", caFile, "-H", `Authorization: Bearer ${token}`];
  }

  args(path: string, more: readonly string[] = []): string[] {
    return [...this.#args, ...more, `${this.#scene.server.url}${path}`];
  }

  async is(status: number, path: string, more: readonly string[] = []): Promise<string> {
    const { out } = await this.#scene.run("curl", this.args(path, more), {
      shows: (said) => compared(said.out),
    });
    hasStatus(out, status);
    return out;
  }

  send(
    status: number,
    method: string,
    path: string,
    body: object,
    type = "application/json",
  ): Promise<string> {
    const data = JSON.stringify(body);
    return this.is(status, path, ["-X", method, "-H", `Content-Type: ${type}`, "--data-binary", data]);
  }
}

async function requests(scene: Scene, version: string): Promise<void> {
  const curl = new Curl(scene, version);
  const [all, one] = [scene.path("configmaps"), scene.path("configmaps/a")];
  const object = (value: string): object => ({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "a" },
    data: { key: value },
  });
  await curl.send(201, "POST", all, object("one"));
  await curl.send(409, "POST", all, object("one"));
  assert.match(await curl.is(200, one), '"one"');
  await curl.send(200, "PUT", one, object("two"));
  await curl.send(200, "PATCH", one, { data: { key: "three" } }, "application/merge-patch+json");
  assert.match(await curl.is(200, all), '"three"');
  await curl.is(405, one, ["-I"]); // apiservers do not support HEAD here
  await curl.is(200, `${all}?limit=1`, ["-H", "Accept: application/json;as=Table;v=v1;g=meta.k8s.io"]);
  await curl.is(200, one, ["-X", "DELETE"]);
  await curl.is(404, one);
  await curl.is(200, "/version");
}

async function watch(scene: Scene, version: string): Promise<void> {
  const curl = new Curl(scene, version);
  const list = JSON.parse(await scene.order({ path: scene.path("configmaps") })) as {
    readonly metadata: { readonly resourceVersion: string };
  };
  const path = `${scene.path("configmaps")}?watch=1&resourceVersion=${list.metadata.resourceVersion}`;
  await scene.configMap("first", "one");
  const watching = scene.start("curl", curl.args(path));
  await watching.says(/"ADDED".*"first"/);
  await scene.hold();
  await scene.changeConfigMaps();
  await watching.says(/"ADDED".*"last"[^\n]*\n/);
  watching.signal("SIGINT");
  const { out } = await watching.ended;
  scene.shown.push(compared(out));
  assert.equal(eventsOf(bodyOf(out)), watchedEvents);
}

async function logs(scene: Scene, version: string): Promise<void> {
  await scene.pod("shell");
  const curl = new Curl(scene, version);
  const following = scene.start("curl", curl.args(`${scene.path("pods/shell/log")}?follow=true`));
  await following.says(new RegExp(scene.log("first")));
  await scene.hold();
  await following.says(new RegExp(scene.log("second")));
  following.signal("SIGINT");
  scene.shown.push(scene.ownLines((await following.ended).out));
}

export const curlOperations: readonly Operation[] = ["--http1.1", "--http2"].flatMap((version) => {
  const client = `curl ${version}`;
  const needs = ["curl"] as const;
  return [
    { client, name: "every verb", needs, isLong: false, run: (scene) => requests(scene, version) },
    { client, name: "watch", needs, isLong: true, run: (scene) => watch(scene, version) },
    { client, name: "logs, followed", needs, isLong: true, run: (scene) => logs(scene, version) },
  ] satisfies Operation[];
});
