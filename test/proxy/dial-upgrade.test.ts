import net from "node:net";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../src/failure.ts";
import { dialUpgrade } from "../../src/proxy/dial-upgrade.ts";
import { anyone } from "../support/h1.ts";
import { PlayedPath } from "../support/path.ts";

const test = suite("proxy/dial-upgrade");

const refused = new Failure("backend-refused", "backend", "connect ECONNREFUSED");

test("a backend that cannot be dialled costs nothing: the next one is asked, and the client is bound to it", async () => {
  const { backends, upstreams } = new PlayedPath(["a", "b"]);
  const asked: string[] = [];
  const socket = new net.Socket();
  const connect = (backend: string): Promise<net.Socket | Failure> => {
    asked.push(backend);
    return Promise.resolve(asked.length === 1 ? refused : socket);
  };
  const client = anyone();
  const dialed = await dialUpgrade(client, { backends, upstreams, connect });
  assert.is(asked.length, 2);
  assert.ok(!(dialed instanceof Failure) && dialed.socket === socket && dialed.backend === asked[1]);
  assert.is(client.backend, asked[1]);
});

test("when none can be dialled the last reason is told", async () => {
  const { backends, upstreams } = new PlayedPath(["a", "b"]);
  const outcome = await dialUpgrade(anyone(), {
    backends,
    upstreams,
    connect: () => Promise.resolve(refused),
  });
  assert.is(outcome, refused);
});

test("the socket shares its backend's fate", async () => {
  const path = new PlayedPath(["a"]);
  const { backends, upstreams } = path;
  const dialed = await dialUpgrade(anyone(), {
    backends,
    upstreams,
    connect: () => Promise.resolve(new net.Socket()),
  });
  let isDead = false;
  if (!(dialed instanceof Failure)) dialed.onDead(() => (isDead = true));
  path.backend("a").kill();
  path.settle();
  assert.ok(isDead);
});

test.run();
