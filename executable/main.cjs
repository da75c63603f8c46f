/**
 * The first code of the single executable: a Node with the package as one compressed asset. At the first start it unpacks
 * that into a folder of its user, named after what is in it, and runs the program from there. CommonJS, as SEA wants it.
 */
const { chmodSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, statSync, writeFileSync } = require("node:fs");
const { runMain } = require("node:module");
const { dirname, join } = require("node:path");
const { getAsset } = require("node:sea");
const { brotliDecompressSync } = require("node:zlib");

/** systemd's CacheDirectory=, then what users have. Never a place where somebody else could have put something first. */
function cacheFolder() {
  const { WATCHKEEPER_UNPACK, CACHE_DIRECTORY, XDG_CACHE_HOME, HOME } = process.env;
  const home = HOME && join(HOME, ".cache");
  const folder = WATCHKEEPER_UNPACK || CACHE_DIRECTORY || XDG_CACHE_HOME || home;
  if (folder) return join(folder, "watchkeeper-executable");
  fail("nowhere to unpack to: set WATCHKEEPER_UNPACK to a folder of this user");
}

function fail(message) {
  process.stderr.write(`watchkeeper: ${message}\n`);
  process.exit(2);
}

/** Ours alone: whoever could write there could run what they like in our name. */
function isOurs(folder) {
  const { uid, mode } = statSync(folder);
  return uid === process.getuid() && (mode & 0o022) === 0;
}

/** An index of paths and sizes, a line break, and the files' bytes one after the other. */
function unpack(folder) {
  const bytes = brotliDecompressSync(Buffer.from(getAsset("package")));
  const end = bytes.indexOf(10);
  let at = end + 1;
  for (const [path, size] of JSON.parse(bytes.subarray(0, end).toString())) {
    const file = join(folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, bytes.subarray(at, at + size));
    at += size;
  }
}

function unpacked() {
  const parent = cacheFolder();
  const folder = join(parent, getAsset("name", "utf8"));
  try {
    mkdirSync(parent, { recursive: true, mode: 0o700 });
    if (!isOurs(parent)) fail(`${parent} can be written by others: it will not do to run a program from`);
    if (existsSync(folder)) return folder;
    const aside = mkdtempSync(join(parent, "unpacking-"));
    unpack(aside);
    chmodSync(aside, 0o700);
    try {
      renameSync(aside, folder);
    } catch {
      rmSync(aside, { recursive: true }); // another one was there first, with the same
    }
    return folder;
  } catch (reason) {
    return fail(`cannot unpack to ${parent}: ${reason.message}`);
  }
}

const folder = unpacked();
const words = process.argv.slice(2);
// Whoever forks a file of the program starts this executable with the file's name before its words.
const file = words.findIndex((word) => word.startsWith(`${folder}/`) && word.endsWith(".js"));
const entry = file < 0 ? join(folder, "dist/src/ops/cli/cli.js") : words[file];
process.argv = [process.execPath, entry, ...words.slice(file + 1)];
runMain();
