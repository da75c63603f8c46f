/**
 * Reads etcd directly, over the JSON gateway on its client port: what is stored, and what changed when. No apiserver,
 * cache or proxy is involved, so the tests compare everything else with it.
 */
import { request } from "node:http";

/** One change of a key in etcd. */
export type Change = {
  readonly kind: "PUT" | "DELETE";
  readonly key: string;
  readonly version: number;
  /** The version at which the key was created. If it equals `version`, the PUT is the creation. */
  readonly createdAt: number;
  readonly value: Buffer;
  /** When etcd's watch delivered the change, in Unix milliseconds. */
  readonly at: number;
};

type Value = {
  readonly key: string;
  readonly value?: string;
  readonly mod_revision: string;
  readonly create_revision?: string;
};

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}

/** Returns the end of the range of all keys that begin with `prefix`: the prefix with its last byte incremented. */
function after(prefix: string): string {
  return prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1);
}

/** Returns the stored value of every key that begins with `prefix`. */
export async function stored(etcdUrl: string, prefix: string): Promise<Map<string, Buffer>> {
  const body = JSON.stringify({ key: base64(prefix), range_end: base64(after(prefix)) });
  const reply = await fetch(`${etcdUrl}/v3/kv/range`, { method: "POST", body });
  if (!reply.ok) throw new Error(`etcd answered ${reply.status}: ${await reply.text()}`);
  const { kvs = [] } = (await reply.json()) as { kvs?: readonly Value[] };
  return new Map(
    kvs.map(({ key, value = "" }) => [Buffer.from(key, "base64").toString(), Buffer.from(value, "base64")]),
  );
}

/** Calls `tell` for every change under `prefix` from now on, in etcd's order. Returns a function that stops it. */
export async function follow(
  etcdUrl: string,
  prefix: string,
  tell: (change: Change) => void,
): Promise<() => void> {
  const body = JSON.stringify({
    create_request: { key: base64(prefix), range_end: base64(after(prefix)) },
  });
  const { promise: created, resolve, reject } = Promise.withResolvers<void>();
  const asked = request(`${etcdUrl}/v3/watch`, { method: "POST" }, (reply) => {
    let rest = "";
    reply.setEncoding("utf8");
    reply.on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      const at = Date.now();
      for (const line of lines) tellLine(line, at, tell);
      resolve();
    });
    reply.on("error", reject);
  });
  asked.on("error", reject);
  asked.end(body);
  await created;
  return () => asked.destroy();
}

type Told = {
  readonly result: { readonly events?: readonly { readonly type?: "DELETE"; readonly kv: Value }[] };
};

function tellLine(line: string, at: number, tell: (change: Change) => void): void {
  if (line === "") return;
  for (const { type, kv } of (JSON.parse(line) as Told).result.events ?? []) {
    tell({
      kind: type ?? "PUT",
      key: Buffer.from(kv.key, "base64").toString(),
      version: Number(kv.mod_revision),
      createdAt: Number(kv.create_revision ?? 0),
      value: Buffer.from(kv.value ?? "", "base64"),
      at,
    });
  }
}

/** Compacts every version before `version`. A watch that resumes from one of these versions gets a 410. */
export async function compact(etcdUrl: string, version: number): Promise<void> {
  const body = JSON.stringify({ revision: String(version) });
  await (await fetch(`${etcdUrl}/v3/kv/compaction`, { method: "POST", body })).text();
}
