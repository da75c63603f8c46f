import { wallClock } from "../../src/base/clock.ts";
import { type Authority, createAuthority, type Pair } from "../../src/pki/pki.ts";

/** One authority and one good serving pair for a whole test process: making them takes 40 ms. */
export type TestPki = { readonly authority: Authority; readonly serving: Pair };

let made: Promise<TestPki> | undefined;

/** The pair is good for localhost, 127.0.0.1, ::1 and the names that every kube-apiserver has. */
export function testPki(): Promise<TestPki> {
  made ??= make();
  return made;
}

async function make(): Promise<TestPki> {
  const authority = await createAuthority({ name: "watchkeeper test", clock: wallClock });
  const hosts = ["localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default.svc"];
  return { authority, serving: authority.issue({ name: "watchkeeper", hosts }) };
}
