import net from "node:net";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../../src/base/failure.ts";
import { PendingQueue } from "../../../src/proxy/request/pending-queue.ts";
import { type DialUpgradeParts, dialUpgrade } from "../../../src/proxy/tunnel/dial-upgrade.ts";
import { Client } from "../../../src/upstream/context/client.ts";
import { manualClock } from "../../support/clock.ts";
import { anyone } from "../../support/h1.ts";
import { PlayedPath } from "../../support/path.ts";

const test = suite("proxy/tunnel/dial-upgrade");

/** No client has a tunnel. */
const beside: Pick<DialUpgradeParts, "tunnels" | "pending"> = {
  tunnels: () => 0,
  pending: new PendingQueue(manualClock()),
};

const refused = new Failure("backend-refused", "backend", "connect ECONNREFUSED");

test("a backend that cannot be dialled costs nothing: the next one is asked, and the client is bound to it", async () => {
  const path = new PlayedPath(["a", "b"]);
  const { backends, pools: upstreams } = path;
  const asked: string[] = [];
  const socket = new net.Socket();
  const connect = (backend: string): Promise<net.Socket | Failure> => {
    asked.push(backend);
    return Promise.resolve(asked.length === 1 ? refused : socket);
  };
  const client = anyone();
  const dialed = await dialUpgrade(client, { ...beside, backends, pools: upstreams, connect });
  assert.is(asked.length, 2);
  assert.ok(!(dialed instanceof Failure) && dialed.socket === socket && dialed.backend === asked[1]);
  assert.is(client.backend, asked[1]);
});

test("when none can be dialled the last reason is returned", async () => {
  const path = new PlayedPath(["a", "b"]);
  const { backends, pools: upstreams } = path;
  const outcome = await dialUpgrade(anyone(), {
    ...beside,
    backends,
    pools: upstreams,
    connect: () => Promise.resolve(refused),
  });
  assert.is(outcome, refused);
});

test("tunnels count as load", async () => {
  const path = new PlayedPath(["a", "b"]);
  const { backends, pools: upstreams } = path;
  const dialed = await dialUpgrade(anyone(), {
    ...beside,
    tunnels: (backend) => (backend === "a" ? 1 : 0),
    backends,
    pools: upstreams,
    connect: () => Promise.resolve(new net.Socket()),
  });
  assert.is(dialed instanceof Failure ? dialed.message : dialed.backend, "b");
});

test("the dial gets both ends of the client's connection, for a PROXY header", async () => {
  const path = new PlayedPath(["a"]);
  const { backends, pools: upstreams } = path;
  const ends = {
    source: { address: "192.0.2.1", port: 1 },
    destination: { address: "192.0.2.9", port: 443 },
  };
  const { address, port, listener, alpn, isTls, isTrustedForwarder } = anyone();
  const client = new Client({ address, port, listener, alpn, isTls, isTrustedForwarder, ends });
  const told: unknown[] = [];
  await dialUpgrade(client, {
    ...beside,
    backends,
    pools: upstreams,
    connect(_backend, _withinMs, of) {
      told.push(of.ends);
      return Promise.resolve(new net.Socket());
    },
  });
  assert.equal(told, [ends]);
});

test.run();
