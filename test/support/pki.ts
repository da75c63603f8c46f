import { wallClock } from "../../src/base/clock.ts";
import { type Authority, createAuthority, type Pair } from "../../src/ops/pki/pki.ts";

/** One CA and one valid serving certificate for the whole test process, because creating them takes 40 ms. */
export type TestPki = { readonly authority: Authority; readonly serving: Pair };

let made: Promise<TestPki> | undefined;

/** The certificate is valid for localhost, 127.0.0.1, ::1 and the Service names of every kube-apiserver. */
export function testPki(): Promise<TestPki> {
  made ??= make();
  return made;
}

async function make(): Promise<TestPki> {
  const authority = await createAuthority({ name: "watchkeeper test", clock: wallClock });
  const hosts = ["localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default.svc"];
  return { authority, serving: authority.issue({ name: "watchkeeper", hosts }) };
}
