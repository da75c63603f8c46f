/** The identity in a client certificate that the test authority issues. */
import { X509Certificate } from "node:crypto";
import type { PeerCertificate } from "../../src/upstream/identity/asserted-identity.ts";
import { readCertificate } from "../../src/x509/certificate.ts";
import { testPki } from "./pki.ts";

export type Holder = {
  readonly name: string;
  readonly groups?: readonly string[];
  readonly notAfter?: number;
};

/**
 * Returns a client certificate, issued by the test authority, as the listener sees it after a successful verification.
 */
export async function shownBy(holder: Holder): Promise<PeerCertificate> {
  const { authority } = await testPki();
  const { certificate } = authority.issue({ ...holder, usage: "client" });
  const x509 = new X509Certificate(certificate);
  const { fingerprint256, validToDate } = x509;
  const read = readCertificate(x509);
  if (typeof read === "string") throw new Error(read);
  return {
    attributes: read.attributes,
    fingerprint: fingerprint256.replaceAll(":", "").toLowerCase(),
    notAfter: validToDate.getTime(),
    problem: undefined,
  };
}

/** The request-header names that kubeadm configures for the apiserver. */
export const usualNames = {
  user: ["x-remote-user"],
  uid: ["x-remote-uid"],
  group: ["x-remote-group"],
  extraPrefixes: ["x-remote-extra-"],
} as const;
