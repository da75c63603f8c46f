import { X509Certificate } from "node:crypto";
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { wallClock } from "../../../../src/base/clock.ts";
import { Failure } from "../../../../src/base/failure.ts";
import { followCa, type PodDirectories, preparePod } from "../../../../src/ops/cli/deploy/pod-files.ts";
import { createAuthority } from "../../../../src/ops/pki/pki.ts";
import { certificatesIn } from "../../../../src/proxy/tls/serving-pair.ts";
import { manualClock } from "../../../support/clock.ts";

type Context = PodDirectories & { readonly root: string };

const test = suite<Context>("cli/pod-files");

test.before.each(async (context) => {
  const root = mkdtempSync(join(tmpdir(), "pod-files-"));
  Object.assign(context, {
    root,
    direct: join(root, "direct"),
    shared: join(root, "shared"),
    state: join(root, "state"),
  });
  mkdirSync(context.shared);
  mkdirSync(context.direct);
  await project(context, 1);
});
test.after.each(({ root }) => rmSync(root, { recursive: true, force: true }));

async function caText(name: string): Promise<string> {
  return (await createAuthority({ name, clock: wallClock })).certificate;
}

/**
 * Updates a projected volume as the kubelet does: writes a new directory, points the link `..data` to it, and leaves
 * the files as links through `..data`.
 */
async function project({ direct }: PodDirectories, round: number, ca?: string): Promise<void> {
  const folder = `..round-${round}`;
  mkdirSync(join(direct, folder));
  const files = {
    token: `token-${round}`,
    namespace: "default",
    "ca.crt": ca ?? (await caText(`cluster-${round}`)),
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(direct, folder, name), text);
  symlinkSync(folder, join(direct, "..data_tmp"));
  renameSync(join(direct, "..data_tmp"), join(direct, "..data"));
  for (const name of Object.keys(files)) {
    if (lstatSync(join(direct, name), { throwIfNoEntry: false }) === undefined)
      symlinkSync(join("..data", name), join(direct, name));
  }
}

const subjects = (text: string): string[] => {
  const certificates = certificatesIn(text);
  return certificates instanceof Failure ? [] : certificates.map(({ subject }) => subject);
};
const read = (directory: string, name: string): string => readFileSync(join(directory, name), "utf8");

test("clients find token and namespace behind links, and both authorities in ca.crt", async (pod) => {
  assert.is(await preparePod(pod, wallClock), undefined);
  assert.is(readlinkSync(join(pod.shared, "token")), join(pod.direct, "token"));
  assert.equal([read(pod.shared, "token"), read(pod.shared, "namespace")], ["token-1", "default"]);
  assert.equal(subjects(read(pod.shared, "ca.crt")), ["CN=watchkeeper sidecar", "CN=cluster-1"]);
  await project(pod, 2);
  assert.is(read(pod.shared, "token"), "token-2");
});

test("all users can read what clients need, and only the sidecar the key", async (pod) => {
  await preparePod(pod, wallClock);
  assert.is(statSync(join(pod.shared, "ca.crt")).mode & 0o777, 0o644);
  assert.is(statSync(join(pod.state, "tls.key")).mode & 0o777, 0o600);
});

test("the certificate is good for the pod's life and for the sidecar's address, and its CA's key is nowhere", async (pod) => {
  await preparePod(pod, wallClock);
  const leaf = new X509Certificate(read(pod.state, "tls.crt"));
  const authority = new X509Certificate(read(pod.state, "ca.crt"));
  assert.ok(leaf.verify(authority.publicKey) && leaf.checkIP("127.0.0.1"));
  assert.ok(leaf.checkHost("kubernetes.default.svc"));
  assert.ok(leaf.validToDate.getTime() - Date.now() > 9 * 365 * 86_400_000);
  assert.match(read(pod.state, "tls.key"), /^-----BEGIN PRIVATE KEY-----[^-]*-----END PRIVATE KEY-----\n$/);
});

test("a sidecar that restarts keeps the CA and certificate that its application trusts", async (pod) => {
  await preparePod(pod, wallClock);
  const before = read(pod.shared, "ca.crt");
  await preparePod(pod, wallClock);
  assert.is(read(pod.shared, "ca.crt"), before);
});

test("a certificate that is broken, another's or nearly over is made anew", async (pod) => {
  const spoil = async (spoilt: () => void, clock = wallClock): Promise<boolean> => {
    await preparePod(pod, wallClock);
    const before = read(pod.state, "ca.crt");
    spoilt();
    assert.is(await preparePod(pod, clock), undefined);
    return read(pod.state, "ca.crt") !== before;
  };
  const other = await caText("other");
  assert.ok(await spoil(() => writeFileSync(join(pod.state, "tls.key"), "")));
  assert.ok(await spoil(() => writeFileSync(join(pod.state, "ca.crt"), other)));
  assert.ok(await spoil(() => rmSync(join(pod.state, "tls.crt"))));
  const nineYears = 3640 * 86_400_000;
  assert.ok(await spoil(() => {}, { ...wallClock, wall: () => wallClock.wall() + nineYears }));
  assert.not.ok(await spoil(() => {}));
});

test("an empty link, or a file in a link's place, is replaced", async (pod) => {
  symlinkSync("/nowhere", join(pod.shared, "token"));
  writeFileSync(join(pod.shared, "namespace"), "stale");
  assert.is(await preparePod(pod, wallClock), undefined);
  assert.equal([read(pod.shared, "token"), read(pod.shared, "namespace")], ["token-1", "default"]);
});

test("another CA of the cluster is there within seconds, and a broken one changes nothing", async (pod) => {
  const clock = manualClock();
  await preparePod(pod, wallClock);
  const told: string[] = [];
  const stop = followCa(pod, { clock, onChange: (failure) => void told.push(failure?.message ?? "taken") });
  await project(pod, 2, (await caText("cluster-1")) + (await caText("cluster-2")));
  clock.advance(3000);
  const now = ["CN=watchkeeper sidecar", "CN=cluster-1", "CN=cluster-2"];
  assert.equal([told, subjects(read(pod.shared, "ca.crt"))], [["taken"], now]);
  await project(pod, 3, "no certificate");
  clock.advance(3000);
  assert.match(told[1] ?? "", /ca\.crt": no certificate/);
  assert.equal(subjects(read(pod.shared, "ca.crt")), now);
  stop();
});

test("a pod without the volumes is told what to mount", async (pod) => {
  const messageOf = async (directories: PodDirectories): Promise<string> =>
    (await preparePod(directories, wallClock))?.message ?? "";
  assert.match(
    await messageOf({ ...pod, direct: join(pod.root, "none") }),
    /mount the projected service account/,
  );
  assert.match(await messageOf({ ...pod, shared: join(pod.root, "none") }), /mount an emptyDir on/);
});

test.run();
