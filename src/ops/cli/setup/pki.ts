/**
 * `watchkeeper pki init`: creates CAs and certificates for a trial, or for a site without a CA of its own. `watchkeeper
 * pki csr`: creates a key and a certificate signing request, for a Kubernetes signer or any other CA.
 */
import { join } from "node:path";
import { isHost } from "../../../base/address.ts";
import { wallClock } from "../../../base/clock.ts";
import { Failure } from "../../../base/failure.ts";
import { quote } from "../../config/problem.ts";
import { createAuthority, createRequest } from "../../pki/pki.ts";
import { given, usage } from "../commands/options.ts";
import { failed } from "../commands/screen.ts";
import { type NewFile, writeNewFiles } from "../deploy/new-files.ts";

type PkiOptions = {
  readonly dir: string;
  readonly hosts: readonly string[];
  readonly name: string;
  readonly signer: string | undefined;
};

type Described = NewFile & { readonly purpose: string };

/**
 * Names that every serving certificate of the proxy contains: those of this machine, and the name under which pods
 * reach the apiserver.
 */
const usualHosts = ["localhost", "127.0.0.1", "::1", "kubernetes.default.svc"];

/** Exit codes: 0 written, 1 nothing was written, 2 usage error. */
export async function pki(args: string[]): Promise<number> {
  const options = given("pki", args);
  if (options instanceof Failure) return failed(options);
  const hosts = options.all("host");
  const strange = hosts.find((host) => !isHost(host));
  if (strange !== undefined)
    return failed(usage(`--host ${quote(strange)} is neither a name nor an IP address`));
  const make = options.words[0] === "init" ? initFiles : csrFiles;
  const files = await make({
    dir: options.text("dir") ?? "pki",
    hosts,
    name: options.text("name") ?? "watchkeeper",
    signer: options.text("signer"),
  });
  if (files instanceof Failure) return failed(files);
  const failure = writeNewFiles(files);
  if (failure !== undefined) return failed(failure);
  const width = Math.max(...files.map(({ path }) => path.length));
  for (const { path, purpose } of files) process.stdout.write(`${path.padEnd(width)}  ${purpose}\n`);
  return 0;
}

/** Makes two CAs. With only one CA, every client with a certificate could act as the front proxy (k/k 119267). */
async function initFiles({ dir, hosts, name }: PkiOptions): Promise<readonly Described[]> {
  const clock = wallClock;
  const authority = await createAuthority({ name: `${name} CA`, clock });
  const serving = authority.issue({ name, hosts: [...usualHosts, ...hosts] });
  const frontAuthority = await createAuthority({ name: `${name} front-proxy CA`, clock });
  const front = frontAuthority.issue({ name: "front-proxy-client", usage: "client" });
  const file = (base: string, text: string, purpose: string): Described => ({
    path: join(dir, base),
    text,
    purpose,
  });
  return [
    file("ca.crt", authority.certificate, "the CA that clients trust"),
    file("ca.key", authority.exportKey(), "its key; store it elsewhere, watchkeeper does not need it"),
    file("watchkeeper.crt", serving.certificate, "listeners[].tls.certFile"),
    file("watchkeeper.key", serving.key, "listeners[].tls.keyFile"),
    file("front-proxy-ca.crt", frontAuthority.certificate, "kube-apiserver --requestheader-client-ca-file"),
    file("front-proxy-ca.key", frontAuthority.exportKey(), "its key; its holder can act as any user"),
    file(
      "front-proxy-client.crt",
      front.certificate,
      "front-proxy-client, for --requestheader-allowed-names",
    ),
    file("front-proxy-client.key", front.key, "its key; its holder can act as any user"),
  ];
}

/** Kubernetes' only built-in signer for clients other than kubelets. It signs no serving certificates. */
const clientSigner = "kubernetes.io/kube-apiserver-client";

async function csrFiles({ dir, hosts, name, signer }: PkiOptions): Promise<readonly Described[] | Failure> {
  if (signer === undefined)
    return usage(`--signer is missing: ${quote(clientSigner)} for a client certificate, or your own signer`);
  const isClient = signer === clientSigner;
  const { request, key } = await createRequest({
    name,
    hosts: isClient ? hosts : [...usualHosts, ...hosts],
    usage: isClient ? "client" : "server",
  });
  const object = {
    apiVersion: "certificates.k8s.io/v1",
    kind: "CertificateSigningRequest",
    metadata: { name },
    spec: {
      signerName: signer,
      request: Buffer.from(request).toString("base64"),
      usages: ["digital signature", "key encipherment", isClient ? "client auth" : "server auth"],
    },
  };
  const manifest = `${JSON.stringify(object, undefined, 2)}\n`;
  const path = join(dir, `${name}-csr.json`);
  return [
    { path: join(dir, `${name}.key`), text: key, purpose: "the private key" },
    { path: join(dir, `${name}.csr`), text: request, purpose: "the request, for any CA" },
    { path, text: manifest, purpose: `kubectl apply -f ${path} && kubectl certificate approve ${name}` },
  ];
}
