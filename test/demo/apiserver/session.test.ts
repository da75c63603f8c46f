/** Requests and answers over a simulated wire; host.test.ts does the same with Node's HTTP/2 as the peer. */
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Apiserver } from "../../../src/demo/apiserver/apiserver.ts";
import { newCluster } from "../../../src/demo/apiserver/cluster.ts";
import { ApiserverSession } from "../../../src/demo/apiserver/session.ts";
import { Field } from "../../../src/h2/core/field.ts";
import { FlushScheduler } from "../../../src/h2/core/flush-scheduler.ts";
import { errorCode } from "../../../src/h2/core/protocol-error.ts";
import { Session } from "../../../src/h2/session/session.ts";
import type { Stream } from "../../../src/h2/session/stream.ts";
import { Network } from "../../simulation/network.ts";
import { Random } from "../../simulation/random.ts";
import { World } from "../../simulation/world.ts";

const test = suite("demo/apiserver/session");

type Heard = { status: string; text: string; isOver: boolean };

function newScene() {
  const random = new Random(1);
  const world = new World(random);
  const [ours, theirs] = new Network(world, random).pair({
    leastMs: 1,
    mostMs: 2,
    chunkBytes: 1_000,
    isEdgy: false,
    windowBytes: 50_000,
  });
  const apiserver = new Apiserver({ store: newCluster(world), clock: world, name: "one" });
  const parts = { handle: apiserver.handle.bind(apiserver), clock: world, turn: new FlushScheduler(world) };
  void new ApiserverSession(parts, (owner) => {
    theirs.owner = owner;
    return theirs;
  });
  const session: Session = new Session({
    role: "client",
    clock: world,
    turn: new FlushScheduler(world),
    owner: {
      opened: (stream) => stream.owner,
      write: (buffers) => ours.write(buffers),
      changed() {},
      ponged() {},
      ended: () => ours.end(),
    },
  });
  ours.owner = {
    receive: (chunk) => session.receive(chunk),
    drained: () => session.drained(),
    closed: () => session.lose(),
  };
  const ask = (method: string, path: string, body?: Buffer): { heard: Heard; stream: Stream } => {
    const heard: Heard = { status: "", text: "", isOver: false };
    const fields = [
      new Field(":method", method),
      new Field(":scheme", "https"),
      new Field(":authority", "one"),
      new Field(":path", path),
    ];
    const stream: Stream = session.open(fields, body === undefined, {
      headers(head, end) {
        heard.status = head[0]?.value ?? "";
        heard.isOver = end;
      },
      data(bytes, start, end, isLast) {
        heard.text += bytes.toString("utf8", start, end);
        stream.grant(end - start);
        heard.isOver = isLast;
      },
      reset() {},
      sent() {},
    });
    if (body !== undefined) stream.sendData(body, 0, body.length, true);
    return { heard, stream };
  };
  return { world, apiserver, ask, close: () => ours.destroy() };
}

const configmaps = "/api/v1/namespaces/default/configmaps";

test("a request is answered once its body is whole", () => {
  const { world, ask } = newScene();
  const data = { k: "v".repeat(100_000) };
  const { heard } = ask("POST", configmaps, Buffer.from(JSON.stringify({ metadata: { name: "a" }, data })));
  world.runUntil(() => heard.isOver, 10_000);
  assert.is(heard.status, "201");
  assert.equal(JSON.parse(heard.text).data, data);
});

test("a watch lives until its stream is reset, or its session lost", () => {
  const { world, apiserver, ask, close } = newScene();
  const one = ask("GET", `${configmaps}?watch=1`);
  ask("GET", `${configmaps}?watch=1`);
  world.runUntil(() => apiserver.watchCount === 2, 1_000);
  one.stream.reset(errorCode.CANCEL);
  world.runUntil(() => apiserver.watchCount === 1, 1_000);
  close();
  world.runUntil(() => apiserver.watchCount === 0, 1_000);
  assert.is(apiserver.watchCount, 0);
});

test.run();
