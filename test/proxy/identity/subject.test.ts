import { X509Certificate } from "node:crypto";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { Failure } from "../../../src/base/failure.ts";
import { type Subject, subjectOf } from "../../../src/proxy/identity/subject.ts";
import { testPki } from "../../support/pki.ts";
import { seeded } from "../../support/random.ts";

const test = suite("proxy/identity/subject");

const { authority } = await testPki();

async function issued(name: string, groups: readonly string[] = []): Promise<Subject | Failure> {
  const { certificate } = authority.issue({ name, groups, usage: "client" });
  return subjectOf(new X509Certificate(certificate).raw);
}

/** Writes DER by hand, to make subjects that the tests' CA would never issue. */
function element(tag: number, ...parts: readonly (string | Uint8Array)[]): Buffer {
  const body = Buffer.concat(
    parts.map((part) => (typeof part === "string" ? Buffer.from(part, "latin1") : part)),
  );
  const long = body.length < 128 ? [body.length] : [0x82, body.length >> 8, body.length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...long]), body]);
}

const commonName = Buffer.from("550403", "hex");
const organization = Buffer.from("55040a", "hex");
const uid = Buffer.from("2b0601040183c25302", "hex");

function attribute(type: Uint8Array, tag: number, value: string | Uint8Array): Buffer {
  return element(0x30, element(0x06, type), element(tag, value));
}

/** Returns the beginning of a certificate whose subject consists of these sets. */
function certificateOf(...sets: readonly Buffer[]): Buffer {
  const head = [element(0xa0, element(0x02, "\x02")), element(0x02, "\x01")];
  const names = element(0x30, ...sets);
  return element(
    0x30,
    element(0x30, ...head, element(0x30), element(0x30), element(0x30), names, element(0x30)),
  );
}

test("the common name is the user, every organisation a group, in order and as often as they stand there", async () => {
  const groups = ["system:masters", "b, c", "", "b, c", "Ärzte", "O=x\nCN=y", "\\2C"];
  assert.equal(await issued("alice", groups), { commonName: "alice", organizations: groups, uids: [] });
});

test("four hundred groups are four hundred", async () => {
  const groups = Array.from({ length: 400 }, (_, at) => `group-${at}`);
  const subject = await issued("alice", groups);
  assert.equal(subject instanceof Failure ? [] : subject.organizations, groups);
});

test("as in Go the last common name counts, and names of one set are names", () => {
  const several = certificateOf(
    element(0x31, attribute(commonName, 0x0c, "admin")),
    element(0x31, attribute(organization, 0x13, "a"), attribute(organization, 0x16, "b")),
    element(0x31, attribute(commonName, 0x0c, "alice"), attribute(uid, 0x0c, "42")),
  );
  assert.equal(subjectOf(several), { commonName: "alice", organizations: ["a", "b"], uids: ["42"] });
});

test("a name that parsers read differently identifies no client", () => {
  const odd: readonly (readonly [number, string | Uint8Array])[] = [
    [0x0c, Buffer.from([0xc0, 0xaf])], // overlong UTF-8
    [0x13, "alic\xe9"], // beyond ASCII in PrintableString
    [0x14, "alice"], // T61String
    [0x1e, "\0a\0l"], // BMPString
    [0x04, "alice"], // no string at all
  ];
  for (const [tag, value] of odd)
    assert.instance(subjectOf(certificateOf(element(0x31, attribute(commonName, tag, value)))), Failure);
});

test("a subject that is cut anywhere identifies no client, and nothing throws", () => {
  const random = seeded(6);
  const whole = certificateOf(element(0x31, attribute(commonName, 0x0c, "alice")));
  for (let length = 0; length < whole.length; length += 1) {
    const subject = subjectOf(whole.subarray(0, length));
    assert.ok(subject instanceof Failure || subject.commonName === "");
  }
  for (let round = 0; round < 2000; round += 1) {
    const broken = Buffer.from(whole);
    broken[random.below(broken.length)] = random.below(256);
    subjectOf(broken);
  }
});

test.run();
