import { suite } from "uvu";
import * as assert from "uvu/assert";
import { elementsIn, encode } from "../../src/x509/der.ts";
import { type Attribute, attributesOf } from "../../src/x509/names.ts";
import { seeded } from "../support/random.ts";

const test = suite("x509/names");

const commonName = Buffer.from("550403", "hex");
const organization = Buffer.from("55040a", "hex");

function attribute(type: Buffer, tag: number, value: string | Buffer): Buffer {
  const bytes = typeof value === "string" ? Buffer.from(value, "latin1") : value;
  return encode(0x30, encode(0x06, type), encode(tag, bytes));
}

/** Reads a name that consists of these sets. */
function read(...sets: readonly Buffer[]): readonly Attribute[] | undefined {
  const [name] = elementsIn(encode(0x30, ...sets)) ?? [];
  return name && attributesOf(name);
}

test("attributes keep their order and number, and those of one set are attributes", () => {
  const several = read(
    encode(0x31, attribute(commonName, 0x0c, "admin")),
    encode(0x31, attribute(organization, 0x13, "b, c"), attribute(organization, 0x16, "")),
    encode(0x31, attribute(commonName, 0x0c, Buffer.from("Ärzte"))),
  );
  assert.equal(
    several?.map(({ text }) => text),
    ["admin", "b, c", "", "Ärzte"],
  );
  assert.equal(several?.map(({ type }) => type).join(" "), "550403 55040a 55040a 550403");
  const groups = Array.from({ length: 400 }, (_, at) => `group-${at}`);
  const many = read(...groups.map((group) => encode(0x31, attribute(organization, 0x0c, group))));
  assert.equal(
    many?.map(({ text }) => text),
    groups,
  );
});

// As parseASN1String of crypto/x509 in Go 1.26 reads them.
const strings: readonly (readonly [tag: number, value: string | Buffer, text: string | undefined])[] = [
  [0x0c, "alice", "alice"],
  [0x0c, Buffer.from([0xc0, 0xaf]), undefined], // overlong UTF-8
  [0x0c, "\0a", "\0a"],
  [0x12, "01 9", "01 9"],
  [0x12, "a", undefined],
  [0x13, "a*b&c (d)", "a*b&c (d)"],
  [0x13, "a@b", undefined],
  [0x13, "a_b", undefined],
  [0x13, "alic\xe9", undefined],
  [0x14, "alic\xe9", "alicé"],
  [0x16, "a@b", "a@b"],
  [0x16, "alic\xe9", undefined],
  [0x1e, "\0a\0l", "al"],
  [0x1e, "\0a\0\0", "a"],
  [0x1e, "\0a\0\0\0\0", "a\0"],
  [0x1e, "\x20\xac", "€"],
  [0x1e, "\0a\0", undefined],
  [0x1e, "\xd8\x00\xdc\x00", undefined], // surrogates
  [0x1e, "\xff\xfe", undefined],
  [0x1e, "\xfd\xd0", undefined],
  [0x1c, "\0\0\0a", undefined], // UniversalString
  [0x04, "alice", undefined], // no string at all
];

for (const [tag, value, text] of strings)
  test(`a string of type 0x${tag.toString(16)} with ${JSON.stringify(value)} reads as ${String(text)}`, () => {
    assert.equal(read(encode(0x31, attribute(commonName, tag, value)))?.[0]?.text, text);
    // One attribute that cannot be read makes Go refuse the whole certificate.
    const all = read(
      encode(0x31, attribute(organization, tag, value)),
      encode(0x31, attribute(commonName, 0x0c, "a")),
    );
    assert.is(all === undefined, text === undefined);
  });

test("a name that is cut anywhere or has any other byte reads as attributes or as undefined", () => {
  const random = seeded(6);
  const whole = encode(0x31, attribute(commonName, 0x0c, "alice"));
  for (let length = 1; length < whole.length; length += 1)
    assert.is(read(whole.subarray(0, length)), undefined);
  for (let round = 0; round < 2000; round += 1) {
    const broken = Buffer.from(whole);
    broken[random.below(broken.length)] = random.below(256);
    read(broken);
  }
});

test.run();
