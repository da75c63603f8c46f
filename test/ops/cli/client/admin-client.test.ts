import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../../../src/base/failure.ts";
import { adminLimits } from "../../../../src/ops/admin/http/limits.ts";
import {
  AdminClient,
  apiCommand,
  responseBytes,
  SseReader,
} from "../../../../src/ops/cli/client/admin-client.ts";
import { failed } from "../../../../src/ops/cli/commands/screen.ts";
import { KeptScreen } from "../../../support/api-server.ts";
import { testPki } from "../../../support/pki.ts";
import { within } from "../../../support/within.ts";

const test = suite("ops/cli/client/admin-client");
const servers = new Set<Server>();

test.after.each(() => {
  for (const server of servers) {
    server.close();
    server.closeAllConnections();
  }
  servers.clear();
});

async function asking(answer: RequestListener): Promise<AdminClient> {
  const server = createServer(answer);
  servers.add(server);
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const bound = server.address();
  return clientAt(`127.0.0.1:${typeof bound === "object" ? bound?.port : ""}`);
}

function clientAt(address: string | undefined, env: NodeJS.ProcessEnv = {}): AdminClient {
  const client = AdminClient.at(address, env);
  if (client instanceof Failure) throw new Error(client.message);
  return client;
}

function failure(outcome: unknown): Failure {
  if (!(outcome instanceof Failure)) throw new Error("It was answered");
  return outcome;
}

function codeOf(outcome: Failure): number {
  return failed(outcome, new KeptScreen());
}
const text =
  ': hello\n\nid: a-1\nevent: upstream_connection.opened\ndata: {"ä":1}\n\nevent: gap\ndata: {}\n\n';

test("the option counts before the environment, and that before the usual port", () => {
  const env = { WATCHKEEPER_ADMIN: "localhost:7" };
  assert.is(clientAt("http://127.0.0.1:9/", env).address, "127.0.0.1:9");
  assert.is(clientAt("[::1]:9", env).address, "[::1]:9");
  assert.is(clientAt(undefined, env).address, "localhost:7");
  assert.is(clientAt(undefined, { WATCHKEEPER_ADMIN: "" }).address, "127.0.0.1:7480");
  for (const wrong of ["https://127.0.0.1:1/x", "unix:/run/x", "a b", "http://", ":7480"])
    assert.is(codeOf(failure(AdminClient.at(wrong, {}))), 2, wrong);
});

test("no server there is exit code 3, with the way out", async () => {
  const refused = failure(await within(20_000, "the refusal", clientAt("127.0.0.1:1").one("stats")));
  assert.is(codeOf(refused), 3);
  assert.match(refused.message, /127\.0\.0\.1:1: .*ECONNREFUSED[^]*--admin or WATCHKEEPER_ADMIN/);
});

test("a list longer than a page is read page by page, as far as it was asked for", async () => {
  const asked: string[] = [];
  const total = 2 * adminLimits.apiPageMost + 3;
  const client = await asking(({ url = "" }, response) => {
    const { searchParams } = new URL(url, "http://a");
    const [offset, limit] = ["offset", "limit"].map((name) => Number(searchParams.get(name)));
    asked.push(`${searchParams.get("state")} ${offset}+${limit}`);
    const count = Math.max(0, Math.min(limit ?? 0, total - (offset ?? 0)));
    const items = Array.from({ length: count }, (_, index) => ({ id: (offset ?? 0) + index }));
    response.end(JSON.stringify({ kind: "WatchList", total, matching: total, items }));
  });
  const all = await client.list("watches", { state: "live" }, 5000);
  assert.is(all instanceof Failure ? -1 : new Set(all.items.map(({ id }) => id)).size, total);
  assert.equal(asked, ["live 0+500", "live 500+500", "live 1000+500"]);
  const some = await client.list("watches", { state: "live" }, 501);
  assert.is(some instanceof Failure ? -1 : some.items.length, 501);
  assert.is(asked.at(-1), "live 500+1");
});

test("a refusal is told in the API's own words: 400 is a wrong question, another a bad answer", async () => {
  let status = 400;
  const client = await asking((_, response) => {
    response.writeHead(status);
    response.end(JSON.stringify({ kind: "Failure", message: '"limit" must be a whole number' }));
  });
  const wrong = failure(await client.list("watches", {}, 1));
  assert.match(wrong.message, '"limit" must be a whole number (400 from');
  assert.is(codeOf(wrong), 2);
  status = 404;
  assert.is(codeOf(failure(await client.one("incidents/9"))), 1);
});

test("a port of another program is said to be one", async () => {
  const page = await asking((_, response) => response.end("<html>"));
  assert.match(failure(await page.one("stats")).message, "is not watchkeeper's API");
  const gone = await asking((request) => request.socket.destroy());
  assert.is(codeOf(failure(await gone.one("stats"))), 3);
});

test("an answer without end is not read to its end", async () => {
  const client = await asking((_, response) => {
    const block = Buffer.alloc(1 << 20);
    const more = (): void => {
      while (!response.destroyed && response.write(block));
    };
    response.on("drain", more);
    more();
  });
  const endless = failure(await within(20_000, "the end of patience", client.text("/metrics")));
  assert.match(endless.message, `more than ${responseBytes} bytes`);
});

test("a token and a CA are read from files, and sent where no one else can read them", async () => {
  const folder = mkdtempSync(join(tmpdir(), "watchkeeper-admin-client-"));
  try {
    const { authority, serving } = await testPki();
    const [token, ca] = [join(folder, "token"), join(folder, "ca.crt")];
    writeFileSync(token, "hush\n");
    writeFileSync(ca, authority.certificate);
    let heard: string | undefined;
    const server = createSecureServer(
      { cert: serving.certificate, key: serving.key },
      (request, response) => {
        heard = request.headers.authorization;
        response.end("{}");
      },
    );
    servers.add(server);
    await new Promise<void>((resolve) => {
      server.listen(0, "127.0.0.1", resolve);
    });
    const bound = server.address();
    const address = `https://localhost:${typeof bound === "object" ? bound?.port : ""}`;
    const env = { WATCHKEEPER_TOKEN_FILE: token, WATCHKEEPER_CA_FILE: ca };
    assert.not.instance(await clientAt(address, env).one("stats"), Failure);
    assert.is(heard, "Bearer hush");
    const untrusting = failure(await clientAt(address, { WATCHKEEPER_TOKEN_FILE: token }).one("stats"));
    assert.match(untrusting.message, /verify|issuer|self.signed/);
    const far = failure(AdminClient.at("http://10.0.0.7:7480", {}, { token }));
    assert.match(far.message, "Cannot send a token");
    assert.instance(AdminClient.at("http://localhost:7480", {}, { token }), AdminClient);
    const absent = failure(AdminClient.at(undefined, {}, { token: join(folder, "nothing") }));
    assert.match(absent.message, "does not exist");
    for (const bad of ["hush\nhush", "hush hush", "\n"]) {
      writeFileSync(token, bad);
      const refused = failure(AdminClient.at(undefined, env));
      assert.is(codeOf(refused), 2);
      assert.match(refused.message, `"${token}" is not a bearer token`);
      assert.not.match(refused.message, "hush");
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("events come out the same wherever the bytes are cut", () => {
  const bytes = Buffer.from(text);
  const expected = [
    { id: "a-1", name: "upstream_connection.opened", data: '{"ä":1}' },
    { id: "", name: "gap", data: "{}" },
  ];
  for (let cut = 0; cut <= bytes.length; cut += 1) {
    const reader = new SseReader();
    const events = [bytes.subarray(0, cut), bytes.subarray(cut)].flatMap((chunk) => reader.push(chunk));
    assert.equal(events, expected, String(cut));
  }
});

test("half an event waits, and one without an end is given up", () => {
  const reader = new SseReader();
  assert.equal(reader.push(Buffer.from("data: half")), []);
  assert.throws(() => reader.push(Buffer.alloc(adminLimits.eventBacklogBytes, "x")), "event too long");
});

test("a command gets its options and its client; a Failure instead is printed", async () => {
  const run = apiCommand("get", ({ client, options, screen: { print } }) => {
    print(`${client.address} ${options.words.join()}`);
    return Promise.resolve(options.has("no-headers") ? new Failure("bad-file", "client", "refused") : 0);
  });
  const screen = new KeptScreen();
  const codes: number[] = [];
  for (const more of [[], ["--no-headers"], ["--admin", "unix:/a"], ["pods"]])
    codes.push(await run(["watches", "--admin", "127.0.0.1:9", ...more], screen));
  assert.equal(codes, [0, 1, 2, 0]);
  assert.is(await run(["pods"], screen), 2);
  assert.match(screen.complaints, /refused[^]*"unix:\/a"[^]*"pods"/);
  assert.is(screen.out, "127.0.0.1:9 watches127.0.0.1:9 watches127.0.0.1:9 watches,pods");
});

test.run();
