import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { EntryOf } from "../../../src/events/journal.ts";
import { Field } from "../../../src/h2/core/field.ts";
import { Log } from "../../../src/ops/admin/events/log.ts";
import { type AccessLogLevel, accessLogger } from "../../../src/proxy/request/access-log.ts";
import { jwt } from "../../support/jwt.ts";
import { bearer, PlayedPath } from "../../support/path.ts";
import { PlayedWatch } from "../../support/watch-path.ts";

const test = suite("proxy/request/access-log");

/** Plays three requests to their end: a read, a request that a backend fails, and a watch that the proxy moves. */
function played(level: AccessLogLevel): { readonly path: PlayedPath; readonly told: readonly Ended[] } {
  // One version, because the watch's "token" is no parameter of watches, so the watch moves only within a version.
  const path = new PlayedPath(["a", "b"], { accessLog: level, versions: { a: "v1.36.1", b: "v1.36.1" } });
  const token = jwt({ sub: "system:serviceaccount:n:web" });
  const fields = [bearer(token), new Field("user-agent", "kubelet/v1.36 (linux)")];
  const watch = new PlayedWatch({ path, fields, query: "resourceVersion=7&token=planted-secret" });
  watch.serve(watch.from, "+8a =9");
  const { client, from, to } = watch;
  client.ask("GET", "/api/v1/namespaces/n/secrets/s?token=planted-secret", fields);
  path.settle();
  from.last.answer(200, "body-of-a-secret");
  path.settle();
  client.ask("GET", "/api/v1/nodes", fields);
  path.settle();
  from.last.answer(500, "broken");
  path.settle();
  watch.kill(from);
  watch.serve(to, "+10b");
  path.clock.advance(5000);
  watch.ear.stream.reset(8);
  path.settle();
  return { path, told: path.entries.filter((entry) => entry.kind === "request.ended") };
}

type Ended = EntryOf<"request.ended">;

test("each level logs its own requests, and off costs no request anything", () => {
  const codes = (level: AccessLogLevel): readonly string[] =>
    played(level).told.map(({ verb, code }) => `${verb} ${code}`);
  assert.equal(codes("None"), []);
  assert.equal(codes("Errors"), ["LIST 500"]);
  assert.equal(codes("LongRunning"), ["LIST 500", "WATCH 200"]);
  assert.equal(codes("All"), ["GET 200", "LIST 500", "WATCH 200"]);
  assert.is(accessLogger("None", new PlayedPath(["a"]).journal), undefined);
});

test("a watch's line has client, request, backend, how far it came and why it ended", () => {
  const line = played("LongRunning").told.at(-1);
  assert.ok((line?.durationMs ?? 0) >= 5000);
  assert.ok((line?.bytes ?? 0) > 100);
  assert.match(line?.auditId ?? "", /^[\w-]{8,}$/);
  assert.equal(
    { ...line, durationMs: 0, bytes: 0, auditId: "" },
    {
      kind: "request.ended",
      client: "10.0.0.9",
      userAgent: "kubelet/v1.36 (linux)",
      user: "system:serviceaccount:n:web",
      verb: "WATCH",
      path: "/api/v1/configmaps",
      resource: "/configmaps",
      backend: line?.backend,
      code: 200,
      end: "client_gone",
      bytes: 0,
      events: 3,
      version: "10",
      moves: 1,
      durationMs: 0,
      auditId: "",
    },
  );
});

test("one line each, and no token, query or body in any (A55)", () => {
  const { path } = played("All");
  let text = "";
  const out = {
    write(line: string, done: () => void): void {
      text += line;
      done();
    },
    on(): void {},
    writableLength: 0,
  };
  const log = new Log(path.journal, { out, clock: path.clock, format: "JSON", accessLog: "All" });
  const ended = path.entries.filter(({ kind }) => kind === "request.ended");
  for (const entry of ended) path.journal.write(entry);
  log.stop();
  assert.is(text.trimEnd().split("\n").length, ended.length);
  for (const secret of ["planted-secret", "eyJ", "body-of-a-secret", "Bearer"])
    assert.not.match(text, secret);
  assert.match(text, '"URI":"/api/v1/namespaces/n/secrets/s"');
});

test.run();
