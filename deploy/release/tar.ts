/**
 * Makes tar archives whose bytes depend only on their contents: all entries have the same time and owner, and are
 * sorted by name.
 */
import { lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { gunzipSync, gzip } from "node:zlib";

export type Entry = {
  readonly mode: number;
  readonly content: Buffer | { readonly link: string } | "directory";
};

/** Entries by their path in the archive. A path has no slash at its beginning or end. */
export type Tree = Map<string, Entry>;

const block = 512;

export function file(text: string | Buffer, mode = 0o644): Entry {
  return { mode, content: Buffer.from(text) };
}

type Added = {
  readonly folder: string;
  readonly prefix: string;
  readonly isWanted: (path: string) => boolean;
};

/** Adds a folder's files below `prefix`. `isWanted` gets paths relative to the folder. */
export function addFolder(tree: Tree, { folder, prefix, isWanted }: Added): void {
  for (const name of readdirSync(folder, { encoding: "utf8", recursive: true })) {
    const path = join(folder, name);
    const stats = lstatSync(path);
    if (stats.isDirectory() || !isWanted(name)) continue;
    const content = stats.isSymbolicLink() ? { link: readlinkSync(path) } : readFileSync(path);
    tree.set(join(prefix, name), { mode: stats.mode & 0o111 ? 0o755 : 0o644, content });
  }
}

/** Returns the archive. Adds an entry for each folder that contains a file. */
export function tarOf(tree: Tree): Buffer {
  const all: Tree = new Map(tree);
  for (const path of tree.keys()) {
    const parts = path.split("/");
    for (let depth = 1; depth < parts.length; depth += 1) {
      const folder = parts.slice(0, depth).join("/");
      if (!all.has(folder)) all.set(folder, { mode: 0o755, content: "directory" });
    }
  }
  const entries = [...all].toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Buffer.concat([
    ...entries.flatMap(([path, entry]) => blocksOf(path, entry)),
    Buffer.alloc(2 * block),
  ]);
}

function octal(value: number, size: number): string {
  return `${value.toString(8).padStart(size - 1, "0")}\0`;
}

function blocksOf(path: string, { mode, content }: Entry): Buffer[] {
  const bytes = Buffer.isBuffer(content) ? content : Buffer.alloc(0);
  const link = typeof content === "object" && "link" in content ? content.link : "";
  const type = content === "directory" ? "5" : link === "" ? "0" : "2";
  const name = content === "directory" ? `${path}/` : path;
  const [prefix, last] = nameParts(name);
  const head = Buffer.alloc(block);
  let at = 0;
  const put = (text: string, size: number): void => {
    head.write(text, at, size, "utf8");
    at += size;
  };
  put(last, 100);
  for (const value of [mode, 0, 0]) put(octal(value, 8), 8);
  put(octal(bytes.length, 12), 12);
  put(octal(0, 12), 12);
  put(" ".repeat(8), 8);
  put(type, 1);
  put(link, 100);
  put("ustar\x0000", 8);
  put("", 64);
  put(octal(0, 8), 8);
  put(octal(0, 8), 8);
  put(prefix, 155);
  const sum = head.reduce((total, byte) => total + byte, 0);
  head.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, 8, "latin1");
  return [head, bytes, Buffer.alloc((block - (bytes.length % block)) % block)];
}

/** Splits a name that is longer than its field at a slash, as the ustar format requires. */
function nameParts(name: string): readonly [prefix: string, last: string] {
  if (Buffer.byteLength(name) <= 100) return ["", name];
  const cut = name.indexOf("/", name.length - 101);
  if (cut < 1 || cut > 155) throw new Error(`The name is too long for a tar archive: ${name}`);
  return [name.slice(0, cut), name.slice(cut + 1)];
}

/** Returns the bytes of one file in a .tgz, such as package/bin/node in an npm package. */
export function fileIn(tgz: Buffer, path: string): Buffer {
  const tar = gunzipSync(tgz);
  for (let at = 0; at < tar.length; ) {
    const text = (from: number, size: number): string =>
      tar.toString("latin1", at + from, at + from + size).replace(/\0.*$/s, "");
    const size = Number.parseInt(text(124, 12), 8);
    if (text(0, 100) === path) return tar.subarray(at + block, at + block + size);
    at += block + Math.ceil((size || 0) / block) * block;
  }
  throw new Error(`The archive has no ${path}`);
}

const gzipped = promisify(gzip);

/**
 * Compresses with gzip's default level of 6. Node writes neither a time nor a file name into the header, so the same
 * bytes give the same result.
 */
export function compressed(bytes: Buffer): Promise<Buffer> {
  return gzipped(bytes, { level: 6 });
}
