/**
 * The cluster's keys and certificates, created with the openssl command. They are those that kubeadm would create in
 * pki/.
 */
import { spawnSync } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

export type Pair = { readonly certFile: string; readonly keyFile: string };

export type Leaf = {
  readonly name: string;
  /** In openssl's form: `/O=system:masters/CN=admin`. */
  readonly subject: string;
  /** In openssl's form: `DNS:a,IP:1.2.3.4`. A certificate without names is a client certificate. */
  readonly names?: readonly string[];
};

/** An almost empty openssl configuration, because openssl's default would make every certificate a CA. */
const emptyConfig = "[req]\ndistinguished_name = dn\n[dn]\n";

/** Returns openssl's arguments for a new key without a passphrase. */
function newKey({ keyFile }: Pair): string[] {
  return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", keyFile];
}

export class Pki {
  readonly folder: string;
  readonly ca: Pair;
  readonly frontProxyCa: Pair;

  constructor(folder: string) {
    this.folder = folder;
    writeFileSync(join(folder, "openssl.cnf"), emptyConfig);
    this.ca = this.authority("ca");
    this.frontProxyCa = this.authority("front-proxy-ca");
  }

  #openssl(name: string, subject: string, extensions: readonly string[], issuer?: Pair): Pair {
    const pair = { certFile: join(this.folder, `${name}.crt`), keyFile: join(this.folder, `${name}.key`) };
    const signed = issuer === undefined ? [] : ["-CA", issuer.certFile, "-CAkey", issuer.keyFile];
    const args = ["req", "-x509", ...newKey(pair), ...signed, "-out", pair.certFile, "-days", "30"];
    args.push("-subj", subject, "-config", join(this.folder, "openssl.cnf"));
    for (const extension of extensions) args.push("-addext", extension);
    this.#run(name, args);
    return pair;
  }

  authority(name: string): Pair {
    return this.#openssl(name, `/CN=${name}`, [
      "basicConstraints=critical,CA:TRUE",
      "keyUsage=critical,keyCertSign,cRLSign",
    ]);
  }

  issue({ name, subject, names = [] }: Leaf, issuer: Pair = this.ca): Pair {
    const usage = names.length > 0 ? "serverAuth,clientAuth" : "clientAuth";
    const extensions = [
      "basicConstraints=critical,CA:FALSE",
      "keyUsage=critical,digitalSignature",
      `extendedKeyUsage=${usage}`,
      "subjectKeyIdentifier=hash",
      "authorityKeyIdentifier=keyid",
    ];
    if (names.length > 0) extensions.push(`subjectAltName=${names.join(",")}`);
    return this.#openssl(name, subject, extensions, issuer);
  }

  /**
   * Issues a client certificate that expires after this many seconds. It uses `openssl ca`, because `openssl req`
   * supports only whole days.
   */
  issueFor(seconds: number, { name, subject }: Leaf, issuer: Pair = this.ca): Pair {
    const pair = { certFile: join(this.folder, `${name}.crt`), keyFile: join(this.folder, `${name}.key`) };
    const request = join(this.folder, `${name}.csr`);
    const config = join(this.folder, `${name}.cnf`);
    const index = join(this.folder, `${name}.index`);
    writeFileSync(index, "");
    writeFileSync(
      config,
      `${emptyConfig}string_mask = utf8only\n[ca]\ndefault_ca = own\n[own]\ndatabase = ${index}\nnew_certs_dir = ${this.folder}\n` +
        `default_md = sha256\npolicy = any\nunique_subject = no\nrand_serial = yes\n` +
        `[any]\norganizationName = optional\ncommonName = supplied\n` +
        `[leaf]\nbasicConstraints = critical,CA:FALSE\nkeyUsage = critical,digitalSignature\nextendedKeyUsage = clientAuth\n`,
    );
    this.#run(name, ["req", "-new", ...newKey(pair), "-out", request, "-subj", subject, "-config", config]);
    const dates = [
      "-startdate",
      asn1Date(Date.now() - 60_000),
      "-enddate",
      asn1Date(Date.now() + seconds * 1000),
    ];
    const signing = [
      "-cert",
      issuer.certFile,
      "-keyfile",
      issuer.keyFile,
      "-extensions",
      "leaf",
      "-preserveDN",
    ];
    const files = ["-in", request, "-out", pair.certFile, "-config", config];
    this.#run(name, ["ca", "-batch", "-notext", ...signing, ...dates, ...files]);
    return pair;
  }

  #run(name: string, args: readonly string[]): void {
    const { status, stderr } = spawnSync("openssl", args, { encoding: "utf8" });
    if (status !== 0) throw new Error(`Cannot make the certificate "${name}": ${stderr}`);
  }

  /**
   * Creates the key pair for service account tokens, and returns the files of the private key and of the public key.
   */
  serviceAccountKey(): { readonly keyFile: string; readonly publicFile: string } {
    const { privateKey, publicKey } = generateKeyPairSync("rsa", {
      modulusLength: 2048,
      publicKeyEncoding: { type: "spki", format: "pem" },
      privateKeyEncoding: { type: "pkcs8", format: "pem" },
    });
    const files = { keyFile: join(this.folder, "sa.key"), publicFile: join(this.folder, "sa.pub") };
    writeFileSync(files.keyFile, privateKey, { mode: 0o600 });
    writeFileSync(files.publicFile, publicKey);
    return files;
  }
}

/** Returns a time as "20261122060000Z", in whole seconds. */
function asn1Date(ms: number): string {
  return `${new Date(ms).toISOString().replace(/\D/g, "").slice(0, 14)}Z`;
}
