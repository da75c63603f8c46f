/**
 * kubectl commands in which bytes flow both ways (logs, exec, attach, cp, port-forward, debug), over websocket and
 * SPDY.
 */
import { randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { join } from "node:path";
import * as assert from "uvu/assert";
import type { Cluster } from "../rig/cluster.ts";
import type { Program } from "../rig/parts.ts";
import { type Act, type Kubectl, operations } from "./kubectl.ts";
import { arrivedWhole, type Operation, type Scene } from "./operation.ts";

/** Body that the web server below sends: large enough to fill a flow-control window many times. */
const page = randomBytes(2_000_000);

/** The web server that all forwarded ports lead to. */
export function serveSite({ node }: Cluster): Server {
  return createServer((_, reply) => reply.end(page)).listen(node.forwardPort, node.address);
}

type Env = Readonly<Record<string, string>>;

const transports: Readonly<Record<string, Env>> = {
  websocket: {},
  SPDY: { KUBECTL_REMOTE_COMMAND_WEBSOCKETS: "false", KUBECTL_PORT_FORWARD_WEBSOCKETS: "false" },
};

async function logs(kubectl: Kubectl, scene: Scene): Promise<void> {
  await scene.pod("shell");
  scene.log("a line");
  const { out } = await kubectl.run(["logs", "shell"], { shows: (said) => scene.ownLines(said.out) });
  assert.match(out, `${scene.namespace} a line\n`);
}

async function logsFollow(kubectl: Kubectl, scene: Scene): Promise<void> {
  await scene.pod("shell");
  const following = kubectl.start(["logs", "-f", "shell"]);
  await following.says(new RegExp(scene.log("first")));
  await scene.hold();
  await following.says(new RegExp(scene.log("second")));
  following.signal("SIGINT");
  scene.shown.push(scene.ownLines((await following.ended).out));
}

function exec(env: Env): Act {
  return async (kubectl, scene) => {
    await scene.pod("shell");
    const script = "echo out; echo err >&2; exit 7";
    const said = await kubectl.run(["exec", "shell", "--", "sh", "-c", script], { env, exit: 7 });
    assert.is(said.out, "out\n");
    const input = "all of this comes back\n".repeat(50_000);
    const echoed = await kubectl.run(["exec", "-i", "shell", "--", "cat"], {
      env,
      input,
      shows: ({ err }) => err,
    });
    arrivedWhole(Buffer.from(echoed.out), Buffer.from(input));
  };
}

function execOpen(env: Env): Act {
  return async (kubectl, scene) => {
    await scene.pod("shell");
    const args = ["exec", "-i", "shell", "--", "sh"];
    const shell = kubectl.start(args, { env });
    shell.write("echo answer $((11 * 11))\n");
    await shell.says(/answer 121/);
    await scene.hold();
    shell.write("echo answer $((12 * 12)); echo err >&2; exit 7\n");
    await kubectl.end(shell, args, { exit: 7 });
  };
}

const fallback = /falling back to streaming logs/;

/** Writes to the container, and waits for its responses and for its log. */
async function converse(kubectl: Kubectl, scene: Scene, args: readonly string[], env: Env): Promise<void> {
  const attached = kubectl.start(args, { env });
  const name = scene.namespace;
  attached.write(`${name} before\n`);
  await attached.says(new RegExp(`heard ${name} before`));
  await scene.hold();
  attached.write(`${name} after\n`);
  // If the attach fails, kubectl debug follows the log instead.
  if (fallback.test(await attached.says(new RegExp(`heard ${name} after|${fallback.source}`)))) {
    attached.signal("SIGINT");
    throw new Error(`The attach has ended: ${(await attached.ended).err}`);
  }
  await attached.says(new RegExp(scene.log("from the container")));
  attached.signal("SIGINT");
  scene.shown.push(scene.ownLines((await attached.ended).out));
}

function attach(env: Env): Act {
  return async (kubectl, scene) => {
    await scene.pod("shell");
    await converse(kubectl, scene, ["attach", "-i", "shell"], env);
  };
}

/** Adds an ephemeral container to a running pod, waits for it, and attaches to it. */
async function debug(kubectl: Kubectl, scene: Scene): Promise<void> {
  await scene.pod("shell");
  const args = ["debug", "-i", "shell", "--image=tools", "--container=debugger", "--profile=general"];
  await converse(kubectl, scene, args, {});
  type Pod = { readonly spec: { readonly ephemeralContainers: readonly { readonly name: string }[] } };
  const containers = (await scene.object<Pod>(scene.path("pods/shell")))?.spec.ephemeralContainers;
  assert.equal(
    containers?.map(({ name }) => name),
    ["debugger"],
  );
}

function portForward(env: Env): Act {
  return async (kubectl, scene) => {
    await scene.pod("shell");
    const forwarding = kubectl.start(["port-forward", "pod/shell", ":80"], { env });
    const [, port] =
      /127\.0\.0\.1:(\d+)/.exec(await forwarding.says(/Forwarding from 127\.0\.0\.1:\d+/)) ?? [];
    const transfer = async (): Promise<void> => {
      const transfers = Array.from({ length: 4 }, async () => {
        const reply = await fetch(`http://127.0.0.1:${port}/`, { headers: { connection: "close" } });
        arrivedWhole(await reply.bytes(), page);
      });
      await Promise.all(transfers);
      scene.shown.push("4 transfers, whole");
    };
    await transfer();
    await scene.hold();
    await transfer();
    forwarding.signal("SIGINT");
    await forwarding.ended;
  };
}

function cp(env: Env): Act {
  return async (kubectl, scene) => {
    await scene.pod("shell");
    const [from, back] = [join(scene.folder, "from"), join(scene.folder, "back")];
    const there = `${scene.namespace}-there`;
    writeFileSync(from, page);
    await kubectl.run(["cp", from, `shell:${there}`], { env });
    arrivedWhole(readFileSync(join(scene.cluster.node.podFolder, there)), page);
    await kubectl.run(["cp", `shell:${there}`, back], { env });
    arrivedWhole(readFileSync(back), page);
  };
}

export function kubectlStreams(client: string, program: Program): Operation[] {
  const short: Record<string, Act> = { logs };
  const long: Record<string, Act> = { "logs -f": logsFollow, debug };
  for (const [transport, env] of Object.entries(transports)) {
    short[`exec (${transport})`] = exec(env);
    short[`cp (${transport})`] = cp(env);
    long[`exec -i (${transport})`] = execOpen(env);
    long[`attach (${transport})`] = attach(env);
    long[`port-forward (${transport})`] = portForward(env);
  }
  return [...operations(client, program, short, false), ...operations(client, program, long, true)];
}
