import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import https from "node:https";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { type Command, command, endCommands } from "../../../support/command.ts";
import { testPki } from "../../../support/pki.ts";
import { Target } from "../../../support/target.ts";

const test = suite("ops/cli/setup/try");

const root = mkdtempSync(join(tmpdir(), "watchkeeper-trying-"));
let target: Target;

test.before(async () => {
  target = await Target.start();
});
test.after(() => {
  endCommands();
  target.stop();
  rmSync(root, { recursive: true, force: true });
});

async function kubeconfig(user: object): Promise<string> {
  const { authority } = await testPki();
  const ca = Buffer.from(authority.certificate).toString("base64");
  const cluster = { server: `https://localhost:${target.port}`, "certificate-authority-data": ca };
  const file = join(root, "kubeconfig");
  const named = { clusters: [{ name: "c", cluster }], users: [{ name: "u", user }] };
  const contexts = [{ name: "x", context: { cluster: "c", user: "u" } }];
  writeFileSync(file, JSON.stringify({ "current-context": "x", ...named, contexts }));
  return file;
}

type Written = {
  readonly clusters: readonly { readonly cluster: Record<string, string> }[];
  readonly users: readonly { readonly user: Record<string, string> }[];
};

async function writtenBy(started: Command): Promise<{ readonly file: string; readonly written: Written }> {
  const file = (await started.said(/^export KUBECONFIG=/)).replace("export KUBECONFIG=", "");
  return { file, written: JSON.parse(readFileSync(file, "utf8")) as Written };
}

const decoded = (text = ""): string => Buffer.from(text, "base64").toString();

/** Sends a request with the server, CA and credentials of the written kubeconfig. */
function get({ clusters, users }: Written, path: string): Promise<number | undefined> {
  const { server = "", "certificate-authority-data": ca } = clusters[0]?.cluster ?? {};
  const user = users[0]?.user ?? {};
  const pair = user["client-key-data"]
    ? { cert: decoded(user["client-certificate-data"]), key: decoded(user["client-key-data"]) }
    : {};
  const headers = user["token"] === undefined ? {} : { authorization: `Bearer ${user["token"]}` };
  return new Promise((resolve, reject) => {
    const options = { ca: decoded(ca), agent: false, headers, ...pair };
    https
      .get(`${server}${path}`, options, (response) => {
        response.resume();
        resolve(response.statusCode);
      })
      .on("error", reject);
  });
}

test("the context's cluster is served until a signal, and nothing stays behind", async () => {
  const started = command(["try", "--kubeconfig", await kubeconfig({ token: "hush-hush" }), "--port", "0"]);
  const { file, written } = await writtenBy(started);
  assert.is(statSync(file).mode & 0o777, 0o600);
  assert.is(await get(written, "/api"), 200);
  started.child.kill("SIGINT");
  assert.is(await started.ended, 0);
  assert.not.ok(existsSync(file));
  assert.not.match(started.text(), "hush");
});

test("a client certificate's holder is served too, with a key that is no one else's", async () => {
  const { authority } = await testPki();
  const { certificate, key } = authority.issue({ name: "alice", usage: "client" });
  const user = {
    "client-certificate-data": Buffer.from(certificate).toString("base64"),
    "client-key-data": Buffer.from(key).toString("base64"),
  };
  const started = command(["try", "--kubeconfig", await kubeconfig(user), "--port", "0"]);
  const { written } = await writtenBy(started);
  assert.is(await get(written, "/api"), 200);
  assert.is.not(written.users[0]?.user["client-key-data"], user["client-key-data"]);
  started.child.kill("SIGTERM");
  assert.is(await started.ended, 0);
});

test("a port that is taken is another one's, unless it was asked for", async () => {
  const server = createServer();
  const port = await new Promise<number>((resolve) => {
    server.listen(0, "127.0.0.1", () => resolve(Number(Reflect.get(Object(server.address()), "port"))));
  });
  const args = ["try", "--kubeconfig", await kubeconfig({ token: "t" }), "--port", String(port)];
  const refused = command(args);
  assert.is(await refused.ended, 1);
  assert.match(refused.text(), "already in use");
  server.close();
});

test("a kubeconfig that will not do is told before anything is written", async () => {
  const file = await kubeconfig({ token: "t" });
  for (const [args, pattern] of [
    [["--context", "z"], /no context "z"/],
    [["--port", "x"], /--port must be a whole number/],
    [["--nonsense"], /--nonsense/],
  ] as const) {
    const started = command(["try", "--kubeconfig", file, ...args]);
    assert.is(await started.ended, 2);
    assert.match(started.text(), pattern);
  }
});

test.run();
