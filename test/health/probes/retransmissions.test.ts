import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { healthLimits } from "../../../src/health/limits.ts";
import { keyOf, readRetransmissions, retransmissionsIn } from "../../../src/health/probes/retransmissions.ts";
import { within } from "../../support/within.ts";

const test = suite("health/probes/retransmissions");

const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 0B00000A:192B 01 00000040:00000000 01:00000123 00000004     0        0 1 2 0 20 4 30 10 -1
   1: 0100007F:1F91 0B00000A:192B 01 00000000:00000000 02:00000123 00000000     0        0 1 2 0 20 4 30 10 -1
   2: 0100007F:1F92 0B00000A:192B 02 00000001:00000000 01:00000123 00000005     0        0 1 2 0 20 4 30 10 -1
`;
const table6 =
  "   3: 0000000000000000FFFF00000100007F:1F93 0000000000000000FFFF00000B00000A:192B 01 00000040:00000000 01:00000123 0000000A     0        0 1 2 0 20 4 30 10 -1\n";

test("of connected sockets those that retransmit are reported, and how often", () => {
  assert.equal(retransmissionsIn(table), [["8080-6443-0a00000b", 4]]);
  assert.equal(retransmissionsIn(table6), [["8083-6443-0a00000b", 10]]);
  assert.equal(retransmissionsIn("nonsense\n"), []);
});

test("a socket that one side has closed counts too, because its last bytes and its FIN are retransmitted", () => {
  const [, first = ""] = table.split("\n");
  const counted = ["04", "08", "09", "0B"].filter(
    (state) => retransmissionsIn(first.replace(" 01 ", ` ${state} `)).length === 1,
  );
  assert.equal(counted, ["04", "08", "09", "0B"]);
});

test("a quiet socket whose keepalive is not answered counts as well, from its third probe on as one that sent four times", () => {
  const quiet = (probes: number): string =>
    `   1: 0100007F:1F91 0B00000A:192B 01 00000000:00000000 02:00000123 00000000     0 ${String(probes).padStart(8)} 1 2 0 20 4 30 10 -1\n`;
  // The answer to the first probe may be on its way. If the round trip takes 50 ms, one of a hundred quiet tunnels is in
  // this state at any time.
  for (const probes of [0, 1]) assert.equal(retransmissionsIn(quiet(probes)), []);
  assert.equal(retransmissionsIn(quiet(3)), [["8081-6443-0a00000b", 4]]);
});

test("a socket's key is the same from either side of the kernel", () => {
  const ports = { localPort: 8080, remotePort: 6443 };
  assert.is(keyOf({ ...ports, remoteAddress: "10.0.0.11" }), "8080-6443-0a00000b");
  assert.is(keyOf({ ...ports, remoteAddress: "::ffff:10.0.0.11" }), "8080-6443-0a00000b");
  assert.is(keyOf({ ...ports, remoteAddress: "fd00::b" }), "8080-6443-0000000b");
  assert.is(keyOf({ ...ports, remoteAddress: "fe80::1:2%eth0" }), "8080-6443-00010002");
});

test("the kernel's own table names a real socket by that key", async () => {
  if (!existsSync("/proc/net/tcp")) process.stdout.write("\nskip: no /proc/net/tcp here\n");
  for (const [host, file] of [
    ["127.0.0.1", "/proc/net/tcp"],
    ["::1", "/proc/net/tcp6"],
  ] as const) {
    if (!existsSync(file)) continue;
    const server = net.createServer((socket) => socket.on("error", () => {}));
    await new Promise<void>((resolve) => server.listen(0, host, resolve));
    const bound = server.address();
    const socket = net.connect(typeof bound === "object" && bound !== null ? bound.port : 0, host);
    await within(20_000, "the socket", new Promise<void>((resolve) => socket.once("connect", resolve)));
    const all = readFileSync(file, "latin1").replaceAll(/ 00000000 {5}/g, " 00000004     ");
    assert.is(new Map(retransmissionsIn(all)).get(keyOf(socket)), 4, host);
    socket.destroy();
    server.close();
  }
});

test("reading it takes whatever it is, and what it holds is bounded", async () => {
  const counts = await within(20_000, "the table", readRetransmissions());
  assert.is(counts !== undefined, existsSync("/proc/net/tcp"));
  for (const [key, count] of counts ?? []) {
    assert.match(key, /^\d+-\d+-[\da-f]{8}$/);
    assert.ok(count > 0);
  }
});

test("of an endless table the first MiB is read, and a table that is not there beside it has no sockets", async () => {
  const folder = mkdtempSync(join(tmpdir(), "watchkeeper-sockets-"));
  const endless = join(folder, "tcp");
  const first = table.split("\n").slice(0, 2).join("\n");
  const filling = `${" ".repeat(149)}\n`.repeat(healthLimits.socketTableBytes / 150);
  writeFileSync(endless, `${first}\n${filling}${table6}`);
  const counts = await readRetransmissions([endless, join(folder, "tcp6")]);
  assert.equal([...(counts ?? [])], [["8080-6443-0a00000b", 4]]);
  rmSync(folder, { recursive: true });
});

test("if no table exists, or one is unreadable or has another format, the numbers are unknown, and not 0", async () => {
  const folder = mkdtempSync(join(tmpdir(), "watchkeeper-sockets-"));
  const [head = ""] = table.split("\n");
  const written = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const good = written("tcp", table);
  const missing = join(folder, "tcp6");
  assert.is(await readRetransmissions([missing, missing]), undefined);
  assert.is(await readRetransmissions([good, folder]), undefined);
  assert.is(await readRetransmissions([good, written("empty", "")]), undefined);
  assert.is(
    await readRetransmissions([good, written("other", head.replace("retrnsmt", "retries"))]),
    undefined,
  );
  assert.equal(await readRetransmissions([written("head", `${head}\n`)]), new Map());
  rmSync(folder, { recursive: true });
});

test.run();
