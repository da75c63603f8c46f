/**
 * etcd asked directly, over the JSON gateway on its client port: the judge of what was written, and of what changed
 * when. No apiserver, cache or proxy stands between.
 */
import { request } from "node:http";

/** One change as etcd made it. */
export type Change = {
  readonly kind: "PUT" | "DELETE";
  readonly key: string;
  readonly version: number;
  /** Its first version: PUT with the two equal is a creation. */
  readonly createdAt: number;
  readonly value: Buffer;
  /** Milliseconds since the epoch, when the watch delivered it. */
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

/** The end of the range of all keys that begin so: the last byte one up. */
function after(prefix: string): string {
  return prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1);
}

/** The stored value of every key that begins with `prefix`. */
export async function stored(etcdUrl: string, prefix: string): Promise<Map<string, Buffer>> {
  const body = JSON.stringify({ key: base64(prefix), range_end: base64(after(prefix)) });
  const reply = await fetch(`${etcdUrl}/v3/kv/range`, { method: "POST", body });
  if (!reply.ok) throw new Error(`etcd answered ${reply.status}: ${await reply.text()}`);
  const { kvs = [] } = (await reply.json()) as { kvs?: readonly Value[] };
  return new Map(
    kvs.map(({ key, value = "" }) => [Buffer.from(key, "base64").toString(), Buffer.from(value, "base64")]),
  );
}

/** Tells every change under `prefix` from now on, in etcd's order; returns what ends it. */
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

/** Forgets every version before `version`: who wants to go on from one of them gets a 410. */
export async function compact(etcdUrl: string, version: number): Promise<void> {
  const body = JSON.stringify({ revision: String(version) });
  await (await fetch(`${etcdUrl}/v3/kv/compaction`, { method: "POST", body })).text();
}
