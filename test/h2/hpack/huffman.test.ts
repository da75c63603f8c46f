import { suite } from "uvu";
import * as assert from "uvu/assert";
import { decodedBound, huffmanCodes, huffmanDecode } from "../../../src/h2/hpack/huffman.ts";
import { bitsOf, huffmanBits, huffmanEncode, packBits } from "../../support/huffman.ts";
import { seeded } from "../../support/random.ts";

const test = suite("h2/hpack/huffman");

/** Returns the decoded text, or undefined if the decoder refuses it. */
function decode(coded: Buffer): string | undefined {
  const out = Buffer.alloc(decodedBound(coded.length));
  const length = huffmanDecode(coded, 0, coded.length, out);
  return length < 0 ? undefined : out.toString("latin1", 0, length);
}

test("RFC 7541's own strings decode (appendix C.4 and C.6)", () => {
  for (const [hex, text] of [
    ["f1e3c2e5f23a6ba0ab90f4ff", "www.example.com"],
    ["a8eb10649cbf", "no-cache"],
    ["25a849e95ba97d7f", "custom-key"],
    ["25a849e95bb8e8b4bf", "custom-value"],
    ["d07abe941054d444a8200595040b8166e082a62d1bff", "Mon, 21 Oct 2013 20:13:21 GMT"],
    [
      "94e7821dd7f2e6c7b335dfdfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007",
      "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
    ],
  ] as const)
    assert.is(decode(Buffer.from(hex, "hex")), text);
});

test("the code is complete: no code begins another, and together they fill the tree", () => {
  assert.is(huffmanCodes.length, 257);
  assert.is(
    huffmanCodes.reduce((sum, { length }) => sum + 2 ** -length, 0),
    1,
  );
});

test("every byte decodes alone, after every other, and wherever it starts within a byte", () => {
  for (let octet = 0; octet < 256; octet++) {
    for (let before = 0; before < 8; before++) {
      const text = Buffer.from([...Array.from({ length: before }, () => 0x30), octet, 255 - octet, octet]);
      assert.is(decode(huffmanEncode(text)), text.toString("latin1"));
    }
  }
});

test("random bytes of every length decode", () => {
  const random = seeded(7541);
  for (let length = 0; length < 300; length++) {
    const text = Buffer.from(Array.from({ length }, () => random.below(256)));
    assert.is(decode(huffmanEncode(text)), text.toString("latin1"));
  }
});

test("the room asked for is enough for the shortest codes", () => {
  const text = "0".repeat(80);
  const coded = huffmanEncode(Buffer.from(text));
  assert.is(coded.length, 50);
  assert.ok(decodedBound(coded.length) > 80);
  assert.is(decode(coded), text);
});

test("the end-of-string code is refused wherever it stands (A9)", () => {
  const endOfString = bitsOf(256);
  for (let before = 0; before < 12; before++) {
    const bits = huffmanBits(Buffer.from("0".repeat(before))) + endOfString;
    assert.is(decode(packBits(bits)), undefined);
    assert.is(decode(packBits(bits + huffmanBits(Buffer.from("abc")))), undefined);
  }
});

test("padding of more than seven bits is refused, and so is any that is not all ones (A9)", () => {
  for (const text of ["", "a", "no-cache", "www.example.com", "\x00", "&"]) {
    const coded = huffmanEncode(Buffer.from(text));
    assert.is(decode(coded), text);
    assert.is(decode(Buffer.concat([coded, Buffer.from([0xff])])), undefined, `${text} and eight more ones`);
    const bits = huffmanBits(Buffer.from(text));
    // Five or more zero bits would be decoded as the character "0".
    if (bits.length % 8 > 3) assert.is(decode(packBits(bits, "0")), undefined, `${text} padded with zeros`);
  }
});

test.run();
