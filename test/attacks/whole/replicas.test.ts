/**
 * The requests that a client of the admin API, or a hostile replica, can make the proxy send: only the API's own paths,
 * only to the addresses of the configured list, and only once. A server beside the replicas (the canary) must never
 * receive a connection.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { replicaAnswer } from "../../../src/fleet/replicas/replica.ts";
import { pause, sceneOf, times } from "../../support/attack.ts";
import { factsOf, switching } from "../../support/replicas.ts";

const test = suite("attacks/whole/replicas");

let touched = 0;
const canary = createTcpServer((socket) => {
  touched += 1;
  socket.destroy();
});
canary.listen(0, "127.0.0.1");
await once(canary, "listening");
const canaryAddress = `127.0.0.1:${(canary.address() as AddressInfo).port}`;

type Asked = { readonly url: string; readonly headers: IncomingMessage["headers"] };

/** The hostile replica answers /replicaz as a replica does. `play` answers everything else. */
const asked: Asked[] = [];
let play: (request: IncomingMessage, response: ServerResponse) => void = (_request, response) => {
  response.end("{}");
};
/** Raw bytes that replace its response to /replicaz; "" means its real facts. */
let answer = "";
const hostile = createServer((incoming, response) => {
  const { url = "", headers } = incoming;
  if (url === "/replicaz") {
    if (answer !== "") {
      incoming.socket.write(answer);
      return;
    }
    response.end(JSON.stringify(replicaAnswer(factsOf(2, { name: "wk-2" }))));
    return;
  }
  asked.push({ url, headers });
  play(incoming, response);
});
hostile.listen(0, "127.0.0.1");
await once(hostile, "listening");
const hostileAddress = `127.0.0.1:${(hostile.address() as AddressInfo).port}`;

const scene = sceneOf(test, () => ({ admin: `replicas: {addresses: ["${hostileAddress}"]}` }));

test.before.each(async () => {
  asked.length = 0;
  play = (_request, response) => response.end("{}");
  await row('"state":"live"');
});

/** Waits until the row of the replica contains the text. The proxy queries its replicas every 5 s. */
async function row(text: string): Promise<void> {
  for (let tries = 0; tries < 400; tries += 1) {
    const { text: list } = await ask("/api/v1/replicas?name=wk-2");
    if (list.includes(text)) return;
    await pause(25);
  }
  throw new Error(`The row of the replica has no ${text}`);
}

test.after(() => {
  canary.close();
  hostile.closeAllConnections();
  hostile.close();
});

type Got = { readonly status: number; readonly text: string; readonly location: string | undefined };

/** Sends a request whose path is not normalized. */
function ask(path: string, headers: Record<string, string> = {}, method = "GET", body = ""): Promise<Got> {
  const { promise, resolve, reject } = Promise.withResolvers<Got>();
  const [host = "", port = ""] = scene.proxy.place.apiAddress.split(":");
  const sent = request({ host, port, path, method, headers, agent: false }, (response) => {
    let text = "";
    response.setEncoding("utf8").on("data", (piece: string) => {
      text += piece;
    });
    response.on("end", () =>
      resolve({ status: response.statusCode ?? 0, text, location: response.headers.location }),
    );
    response.on("error", reject);
  });
  sent.on("error", reject).end(body);
  return promise;
}

const root = "/api/v1/replicas/";

test("no name and no path makes the proxy connect to an address that is not in its list", async () => {
  const { port } = canary.address() as AddressInfo;
  const names = [
    canaryAddress,
    `${canaryAddress}@wk-2`,
    `wk-2@${canaryAddress}`,
    `wk-2:${port}`,
    `http://${canaryAddress}`,
    `wk-2#@${canaryAddress}`,
    `localhost:${port}`,
    `[::ffff:127.0.0.1]:${port}`,
    `2130706433:${port}`,
    "__proto__",
    "constructor",
    "..",
  ];
  for (const name of names)
    for (const written of [name, encodeURIComponent(name)]) {
      if (/[ #]/.test(written)) continue;
      const { status } = await ask(`${root}${written}/stats`);
      assert.is(status, 404, written);
    }
  for (const path of [
    `@${canaryAddress}/`,
    `//${canaryAddress}/`,
    `http://${canaryAddress}/`,
    "../../../metrics",
    "..%2f..%2fmetrics",
    "%2e%2e/%2e%2e/configz",
    "incidents/%2e%2e",
    "incidents/1/../../reload",
    "stats/..;/configz",
    "events",
    "configz",
    "../../configz",
    `replicas/${encodeURIComponent(canaryAddress)}/stats`,
    "replicas/wk-2/stats",
    "replicas%2fwk-2%2fstats",
  ])
    assert.is((await ask(`${root}wk-2/${path}`)).status, 404, path);
  assert.equal(asked, []);
  const odd = "incidents/1%0d%0aHost:%20x%0d%0a%0d%0aGET%20%2f%20HTTP%2f1.1";
  await ask(`${root}wk-2/${odd}`);
  await ask(`${root}wk-2/watches?q=%0d%0aHost:%20x&limit=1`);
  assert.equal(
    asked.map(({ url }) => url),
    [
      "/api/v1/incidents/1%0D%0AHost%3A%20x%0D%0A%0D%0AGET%20%2F%20HTTP%2F1.1",
      "/api/v1/watches?q=%0D%0AHost%3A+x&limit=1",
    ],
  );
  assert.is(touched, 0);
});

test("the honest twin: the caller's token, and nothing else of the caller, reaches the replica", async () => {
  const headers = {
    authorization: "Bearer own",
    cookie: "a=b",
    "x-forwarded-for": "9.9.9.9",
    "x-remote-user": "admin",
    "impersonate-user": "admin",
    forwarded: "for=9.9.9.9",
  };
  const { status, text } = await ask(`${root}wk-2/stats`, headers);
  assert.equal([status, text], [200, "{}"]);
  assert.equal(Object.keys(asked[0]?.headers ?? {}).toSorted(), [
    "accept",
    "authorization",
    "connection",
    "host",
  ]);
  assert.is(asked[0]?.headers.authorization, "Bearer own");
});

test("a replica cannot send the caller or the proxy elsewhere, nor make a page of its response", async () => {
  for (const status of [301, 302, 303, 307, 308, 300]) {
    play = (_request, response) => response.writeHead(status, { location: `http://${canaryAddress}/` }).end();
    const got = await ask(`${root}wk-2/stats`);
    assert.equal([got.status, got.location], [502, undefined], `${status}`);
  }
  play = (_request, response) =>
    response
      .writeHead(200, {
        "content-type": "text/html",
        "set-cookie": "a=b",
        refresh: `0;url=http://${canaryAddress}`,
      })
      .end("<script>alert(1)</script>");
  const [host = "", port = ""] = scene.proxy.place.apiAddress.split(":");
  const page = await fetch(`http://${host}:${port}${root}wk-2/stats`);
  assert.match(page.headers.get("content-type") ?? "", "application/json");
  assert.is(page.headers.get("x-content-type-options"), "nosniff");
  assert.equal([page.headers.get("set-cookie"), page.headers.get("refresh")], [null, null]);
  await page.text();
  assert.is(touched, 0);
});

test("a replica that answers without end, or not at all, holds a request for 8 s and no memory", async () => {
  play = (_request, response) => {
    const piece = Buffer.alloc(1 << 20, 32);
    const write = (): void => {
      if (!response.destroyed) response.write(piece, () => setImmediate(write));
    };
    write();
  };
  const { status, text } = await ask(`${root}wk-2/watches`);
  assert.is(status, 502);
  assert.match(text, "an answer of more than 8388608 bytes");
  const began = (): Promise<readonly number[]> =>
    Promise.all(times(40, async () => (await ask(`${root}wk-2/watches`)).status));
  const count = (all: readonly number[], code: number): number => all.filter((one) => one === code).length;
  const beganAt = performance.now();
  play = () => {};
  const silent = await began();
  assert.equal([count(silent, 502), count(silent, 503)], [8, 32], "eight wait, the others are refused");
  // The request has no Expect field, so a 100 fails it at once. How many find a free place depends on the time.
  play = (incoming) => incoming.socket.write("HTTP/1.1 100 C\r\n\r\n");
  const informed = await began();
  assert.is(count(informed, 502) + count(informed, 503), 40);
  assert.ok(count(informed, 502) >= 8);
  assert.ok(performance.now() - beganAt < 20_000);
  assert.is((await ask("/api/v1/stats")).status, 200);
});

test("a replica that switches protocols takes no slot, and is asked again", async () => {
  play = (incoming) => incoming.socket.write(switching);
  for (let round = 0; round < 3; round += 1)
    for (const { status, text } of await Promise.all(times(8, () => ask(`${root}wk-2/watches`)))) {
      assert.is(status, 502);
      assert.match(text, "bad upgrade");
    }
  answer = switching;
  await row("bad upgrade");
  answer = "";
  await row('"lastError":""');
});

test("a page of another site can forward no operation", async () => {
  const body = JSON.stringify({ users: ["x"], rate: "1/s", duration: "1h" });
  const good = { "content-type": "application/json", "x-watchkeeper-operator": "alice" };
  for (const foreign of [
    { ...good, origin: "https://evil.example" },
    { ...good, "sec-fetch-site": "cross-site" },
    { ...good, "x-watchkeeper-operator": "" },
    { ...good, host: "evil.example" },
    { ...good, "content-type": "text/plain" },
  ]) {
    const { status } = await ask(`${root}wk-2/limits`, foreign, "POST", body);
    assert.ok([403, 415, 421].includes(status), `${status}`);
  }
  for (const operation of ["reload", "backends/cp-1/drain", "watches/a/move", "limits/../reload"])
    assert.ok(
      [404, 405].includes((await ask(`${root}wk-2/${operation}`, good, "POST", "{}")).status),
      operation,
    );
  assert.equal(asked, []);
  assert.is((await ask(`${root}wk-2/limits`, good, "POST", body)).status, 200, "the honest twin");
  assert.is(asked[0]?.url, "/api/v1/limits");
});

test.run();
