/**
 * Prepares what all peers share: one PKI, two backends on the load's core, free ports, and the programs that generate
 * the load.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../test/support/free-port.ts";
import { launch, mediumPath, type Peer, type Place, type Proxy, smallPath } from "./peer.ts";
import { finish, loadCore, type Running, start } from "./processes.ts";
import { find, goProgram } from "./tools.ts";

/**
 * "static": nghttpd, which uses less CPU time than the other backend. "live": bench/go, which also has watches, answers
 * uploads and serves HTTP/1.1.
 */
export type BackendKind = "static" | "live";

export type Rig = {
  readonly dir: string;
  /** A 2 MB file to upload. */
  readonly uploadFile: string;
  /** The address of the live backend's control port, which makes the backend send events. */
  readonly control: string;
  launch(peer: Peer, backend: BackendKind): Promise<Proxy>;
  /** Runs a bench/go subcommand to its end. Returns its last line of JSON. */
  ask(words: readonly string[]): Promise<Record<string, number>>;
  /** Starts a bench/go subcommand that takes commands. */
  talk(words: readonly string[]): Talk;
  stop(): Promise<void>;
};

/** A bench/go process that takes commands on stdin. */
export type Talk = {
  /** Resolves to the next line of JSON that the process prints. Fails if the process ends before that. */
  next(): Promise<Record<string, number | string>>;
  say(word: string): void;
  stop(): Promise<void>;
};

/** Writes a tree of files at the paths that the load requests, because nghttpd serves files. */
function writeTree(dir: string): void {
  const write = (path: string, body: Buffer): void => {
    mkdirSync(join(dir, path, ".."), { recursive: true });
    writeFileSync(join(dir, path), body);
  };
  write(smallPath, Buffer.alloc(2048, '{"a":1}\n'));
  write(mediumPath, Buffer.alloc(100_000, '{"kind":"Pod"}\n'));
  write("/api/v1/configmaps", Buffer.alloc(2048, '{"a":1}\n'));
  write("/api/v1/pods", Buffer.alloc(20_000_000, '{"kind":"Pod"}\n'));
  write("/readyz", Buffer.from("ok"));
}

function talkWith(running: Running): Talk {
  const lines: string[] = [];
  let wake: (() => void) | undefined;
  let rest = "";
  running.child.stdout?.on("data", (chunk: Buffer) => {
    const parts = (rest + chunk.toString()).split("\n");
    rest = parts.pop() ?? "";
    lines.push(...parts);
    wake?.();
  });
  running.child.once("close", () => wake?.());
  return {
    async next() {
      while (lines.length === 0) {
        if (running.isOver()) throw new Error(`A load program ended early:\n${running.said()}`);
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      return JSON.parse(lines.shift() ?? "{}") as Record<string, number | string>;
    },
    say: (word) => void running.child.stdin?.write(`${word}\n`),
    stop: () => running.stop(),
  };
}

/** Prepares what all peers share. `stop` removes everything again. */
export async function startRig(): Promise<Rig> {
  const program = goProgram();
  const dir = mkdtempSync(join(tmpdir(), "watchkeeper-bench-"));
  process.on("exit", () => rmSync(dir, { recursive: true, force: true }));
  const pki = { caFile: join(dir, "ca.crt"), certFile: join(dir, "tls.crt"), keyFile: join(dir, "tls.key") };
  await finish([program, "pki", "-dir", dir], loadCore);
  writeTree(join(dir, "tree"));
  const uploadFile = join(dir, "upload");
  writeFileSync(uploadFile, Buffer.alloc(2_000_000, "x"));
  const ports = { static: await freePort(), live: await freePort() };
  const control = `127.0.0.1:${await freePort()}`;
  // Permits 100 streams on each connection, as the apiserver does. The flow-control windows are so large that the
  // backend never waits for them.
  const nghttpd = `${find("nghttpd") ?? ""} -m 100 -w 24 -W 26 -d ${join(dir, "tree")} ${ports.static}`;
  const backends = [
    start([...nghttpd.split(" "), pki.keyFile, pki.certFile], loadCore),
    start([program, "serve", "-tls", `127.0.0.1:${ports.live}`, "-control", control, "-pki", dir], loadCore),
  ];
  let count = 0;
  const placeOf = async (peer: Peer, backend: BackendKind): Promise<Place> => {
    const own = join(dir, `${peer.name}-${count++}`);
    mkdirSync(own);
    const backendPort = ports[peer.isUpstreamH1 === true ? "live" : backend];
    return { port: await freePort(), metricsPort: await freePort(), backendPort, dir: own, ...pki };
  };
  return {
    dir,
    uploadFile,
    control,
    launch: async (peer, backend) => launch(peer, await placeOf(peer, backend)),
    async ask(words) {
      const said = await finish([program, ...words, "-pki", dir], loadCore);
      return JSON.parse(said.trim().split("\n").at(-1) ?? "{}") as Record<string, number>;
    },
    talk: (words) => talkWith(start([program, ...words, "-pki", dir], loadCore)),
    async stop() {
      await Promise.all(backends.map((backend) => backend.stop()));
    },
  };
}
