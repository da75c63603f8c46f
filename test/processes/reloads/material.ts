/**
 * The contents of the configuration's certificate and CA files: for each file some valid versions that must be loaded,
 * and every known fault with the message of its refusal. A change is written as by a Secret volume, in place, or by
 * renaming a new file.
 */
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { wallClock } from "../../../src/base/clock.ts";
import { type Authority, createAuthority, type Pair } from "../../../src/ops/pki/pki.ts";
import { type FrontProxyPki, frontProxyPki } from "../../support/front-proxy.ts";
import { testPki } from "../../support/pki.ts";

/** One change of files, and the expected message about it. */
export type Change = {
  /** The name of the certificate or CA in the journal. */
  readonly name: string;
  readonly title: string;
  /** The new content of each file, by file name. */
  readonly files: Readonly<Record<string, string>>;
  /** Undefined if the change is valid and must be loaded. */
  readonly refusal: RegExp | undefined;
};

export type Materials = {
  readonly pki: FrontProxyPki;
  /** The changes alternate, so that each kind occurs equally often. */
  readonly changes: readonly Change[];
  /** The CAs that clients trust. */
  readonly trusted: string;
  /** The initial content of every file. */
  readonly first: Readonly<Record<string, string>>;
};

type Pairs = {
  readonly name: string;
  readonly base: string;
  readonly good: readonly Pair[];
  readonly other: Pair;
};

const past = { notBefore: wallClock.wall() - 9e6, notAfter: wallClock.wall() - 3e6 };

export async function makeMaterials(): Promise<Materials> {
  const { authority, serving } = await testPki();
  const pki = await frontProxyPki();
  const second = await createAuthority({ name: "second", clock: wallClock });
  const stranger = await createAuthority({ name: "stranger", clock: wallClock });
  const gone = await createAuthority({ name: "gone", clock: wallClock, notAfter: wallClock.wall() - 1000 });
  const hosts = ["localhost", "127.0.0.1"];
  const served = (by: Authority, name: string): Pair => by.issue({ name, hosts });
  const client = (by: Authority): Pair => by.issue({ name: "front-proxy-client", usage: "client" });
  const rsa = authority.issue({ name: "rsa", hosts, keyType: "rsa" });
  const host = authority.issue({ name: "other", hosts: ["other.test"] });
  const changes = [
    pairChanges(
      { name: "kube", base: "tls", good: [served(second, "new"), rsa, serving], other: host },
      {
        expired: authority.issue({ name: "gone", hosts, ...past }),
      },
    ),
    pairChanges(
      {
        name: "kube/other.test",
        base: "other",
        good: [authority.issue({ name: "other-2", hosts: ["other.test"] }), host],
        other: serving,
      },
      { expired: authority.issue({ name: "gone", hosts: ["other.test"], ...past }) },
    ),
    pairChanges(
      { name: "front-proxy", base: "front-proxy", good: [client(pki.authority), pki.pair], other: serving },
      { expired: pki.authority.issue({ name: "gone", usage: "client", ...past }) },
      client(stranger),
    ),
    caChanges(
      "backend-ca",
      "ca.crt",
      [authority.certificate + second.certificate, authority.certificate],
      gone,
      stranger,
    ),
    caChanges(
      "kube client CA",
      "clients.crt",
      [pki.clients.certificate + stranger.certificate, pki.clients.certificate],
      gone,
    ),
  ];
  return {
    pki,
    changes: inTurn(changes),
    trusted: authority.certificate + second.certificate,
    first: {
      "tls.crt": serving.certificate,
      "tls.key": serving.key,
      "other.crt": host.certificate,
      "other.key": host.key,
      "front-proxy.crt": pki.pair.certificate,
      "front-proxy.key": pki.pair.key,
      "ca.crt": authority.certificate,
      "clients.crt": pki.clients.certificate,
    },
  };
}

/** Returns valid and invalid changes of a certificate pair. `foreign` is a well-formed pair of another cluster. */
function pairChanges(
  { name, base, good, other }: Pairs,
  { expired }: { readonly expired: Pair },
  foreign?: Pair,
): Change[] {
  const files = ({ certificate, key }: Pair): Record<string, string> => ({
    [`${base}.crt`]: certificate,
    [`${base}.key`]: key,
  });
  const [one = other] = good;
  const crt = `${base}\\.crt`;
  const bad: readonly (readonly [string, Pair, RegExp])[] = [
    ["nothing", { certificate: "", key: "" }, new RegExp(`${crt}".*no certificate among its 0 characters`)],
    [
      "a nil PEM",
      { ...one, certificate: "<nil>" },
      new RegExp(`${crt}".*no certificate among its 5 characters`),
    ],
    ["no key", { ...one, key: "" }, new RegExp(`${base}\\.key".*no private key`)],
    ["another's key", { ...one, key: other.key }, new RegExp(`${crt}".*not that of the certificate of "CN=`)],
    ["garbage", { ...one, certificate: "x".repeat(16_384) }, new RegExp(`${crt}".*no certificate among`)],
    [
      "half a file",
      { ...one, certificate: one.certificate.slice(0, 400) },
      new RegExp(`${crt}".*ends inside`),
    ],
    ["the past", expired, new RegExp(`${crt}".*the certificate of "CN=gone" expired at`)],
    ...(foreign === undefined
      ? []
      : [
          [
            "another cluster's",
            foreign,
            new RegExp(`${crt}".*the certificate of "CN=front-proxy-client" is unsuitable: backend`),
          ] as const,
        ]),
  ];
  return mixed(
    good.map((pair) => ({ name, title: "a good pair", files: files(pair), refusal: undefined })),
    bad.map(([title, pair, refusal]) => ({ name, title, files: files(pair), refusal })),
  );
}

function caChanges(
  name: string,
  file: string,
  good: readonly string[],
  gone: Authority,
  foreign?: Authority,
): Change[] {
  const [one = ""] = good;
  const bad: readonly (readonly [string, string, RegExp])[] = [
    ["nothing", "", new RegExp(`${file}": no certificate among its 0 characters`)],
    ["a nil PEM", "<nil>", new RegExp(`${file}": no certificate among its 5 characters`)],
    ["half a file", one.slice(0, 400), new RegExp(`${file}": the file ends inside a CERTIFICATE`)],
    ["the past", gone.certificate, new RegExp(`${file}": the certificate of "CN=gone" expired at`)],
    ...(foreign === undefined
      ? []
      : [
          [
            "another cluster's",
            foreign.certificate,
            new RegExp(`${file}": the certificate of "CN=stranger" is unsuitable: backend`),
          ] as const,
        ]),
  ];
  return mixed(
    good.map((text) => ({ name, title: "good authorities", files: { [file]: text }, refusal: undefined })),
    bad.map(([title, text, refusal]) => ({ name, title, files: { [file]: text }, refusal })),
  );
}

/** Mixes the changes: bad, bad, good, bad, bad, another good one, and so on. */
function mixed(good: readonly Change[], bad: readonly Change[]): Change[] {
  return bad.flatMap((change, at) => {
    const next = good[Math.floor(at / 2) % good.length];
    return at % 2 === 0 || next === undefined ? [change] : [change, next];
  });
}

function inTurn(lists: readonly (readonly Change[])[]): Change[] {
  const longest = Math.max(...lists.map((list) => list.length));
  return Array.from({ length: longest }, (_, at) =>
    lists.flatMap((list) => list[at % list.length] ?? []),
  ).flat();
}

/**
 * A directory as the kubelet mounts it: each file is a link into `..data`, which is a link to the present version. A
 * change replaces only the latter link.
 */
export class Volume {
  readonly directory: string;
  #files: Record<string, string> = {};
  #version = 0;

  constructor(directory: string, files: Readonly<Record<string, string>>) {
    this.directory = directory;
    this.put(files);
    for (const name of Object.keys(files)) symlinkSync(`..data/${name}`, join(directory, name));
  }

  put(files: Readonly<Record<string, string>>): void {
    this.#files = { ...this.#files, ...files };
    const was = `..v${this.#version}`;
    this.#version += 1;
    const version = `..v${this.#version}`;
    mkdirSync(join(this.directory, version), { mode: 0o700 });
    for (const [name, text] of Object.entries(this.#files))
      writeFileSync(join(this.directory, version, name), text, { mode: 0o600 });
    symlinkSync(version, join(this.directory, "..data_tmp"));
    renameSync(join(this.directory, "..data_tmp"), join(this.directory, "..data"));
    rmSync(join(this.directory, was), { recursive: true, force: true });
  }
}
