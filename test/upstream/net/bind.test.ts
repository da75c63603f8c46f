import net from "node:net";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { adopt, bind } from "../../../src/upstream/net/bind.ts";

const test = suite("upstream/net/bind");

const { listen } = net.Server.prototype;

/** Plays a kernel that has no IPv6: a socket of that family cannot be made. */
function withoutIpv6(): void {
  net.Server.prototype.listen = function played(this: net.Server, ...given: unknown[]): net.Server {
    const [where] = given;
    if (typeof where === "object" && where !== null && "host" in where && where.host === "::") {
      const error = Object.assign(new Error("address family not supported"), { code: "EAFNOSUPPORT" });
      process.nextTick(() => this.emit("error", error));
      return this;
    }
    return Reflect.apply(listen, this, given);
  };
}

const servers: net.Server[] = [];
const server = (): net.Server => {
  const one = net.createServer();
  servers.push(one);
  return one;
};
test.after.each(() => {
  net.Server.prototype.listen = listen;
  for (const one of servers.splice(0)) one.close();
});

const hostOf = (one: net.Server): unknown => {
  const bound = one.address();
  return typeof bound === "object" && bound?.address;
};

test("an address without a host is bound over IPv4 if the kernel has no IPv6", async () => {
  withoutIpv6();
  const one = server();
  assert.is(await bind(one, { host: "::", port: 0 }), undefined);
  assert.is(hostOf(one), "0.0.0.0");
});

test("an address of IPv4 that is in use is an error, not another address", async () => {
  const [one, other] = [server(), server()];
  assert.is(await bind(one, { host: "127.0.0.1", port: 0 }), undefined);
  const bound = one.address();
  const port = typeof bound === "object" && bound !== null ? bound.port : 0;
  const error = await bind(other, { host: "127.0.0.1", port });
  assert.is(error instanceof Error && "code" in error && error.code, "EADDRINUSE");
});

test("a socket of 0.0.0.0 is adopted for an address without a host only if the kernel has no IPv6", async () => {
  const passed = async (): Promise<net.Server> => {
    const one = server();
    assert.is(await bind(one, { host: "0.0.0.0", port: 0 }), undefined);
    return one;
  };
  assert.not.ok(await adopt(server(), await passed(), { host: "::", port: 0 }));
  withoutIpv6();
  assert.ok(await adopt(server(), await passed(), { host: "::", port: 0 }));
  assert.not.ok(await adopt(server(), await passed(), { host: "127.0.0.1", port: 0 }));
});

test.run();
