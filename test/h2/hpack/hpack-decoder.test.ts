import { suite } from "uvu";
import * as assert from "uvu/assert";
import { limits } from "../../../src/base/limits.ts";
import { h2Limits } from "../../../src/h2/core/limits.ts";
import { errorCode, ProtocolError } from "../../../src/h2/core/protocol-error.ts";
import { HpackDecoder } from "../../../src/h2/hpack/hpack-decoder.ts";
import { fastestMs } from "../../support/fastest.ts";
import { figure } from "../../support/figure.ts";
import { decode, hex, integer, lines, literal, plainString } from "../../support/hpack.ts";
import { huffmanEncode } from "../../support/huffman.ts";

const test = suite("h2/hpack/hpack-decoder");

/** Fails unless the decoder ends the session with COMPRESSION_ERROR and a message that contains `reason`. */
function refuses(block: Buffer, reason: string, decoder = new HpackDecoder()): void {
  assert.throws(
    () => decode(decoder, block),
    (error: unknown) =>
      error instanceof ProtocolError &&
      error.code === errorCode.COMPRESSION_ERROR &&
      error.scope === "session" &&
      error.message.includes(reason),
    `${block.toString("hex").slice(0, 40)} is not refused for "${reason}"`,
  );
}

test("the four representations are read (RFC 7541 C.2)", () => {
  const decoder = new HpackDecoder();
  const blocks: [string, string, boolean][] = [
    ["400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572", "custom-key: custom-header", false],
    ["040c 2f73 616d 706c 652f 7061 7468", ":path: /sample/path", false],
    ["1008 7061 7373 776f 7264 0673 6563 7265 74", "password: secret", true],
    ["82", ":method: GET", false],
    ["be", "custom-key: custom-header", false],
  ];
  for (const [block, line, isNeverIndexed] of blocks) {
    const [field] = decode(decoder, hex(block));
    assert.is(`${field?.name}: ${field?.value}`, line);
    assert.is(field?.isNeverIndexed, isNeverIndexed);
  }
});

const requests = [
  [":method: GET", ":scheme: http", ":path: /", ":authority: www.example.com"],
  [":method: GET", ":scheme: http", ":path: /", ":authority: www.example.com", "cache-control: no-cache"],
  [
    ":method: GET",
    ":scheme: https",
    ":path: /index.html",
    ":authority: www.example.com",
    "custom-key: custom-value",
  ],
];

test("three requests on one session, plain and Huffman-coded (RFC 7541 C.3, C.4)", () => {
  for (const blocks of [
    [
      "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
      "8286 84be 5808 6e6f 2d63 6163 6865",
      "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
    ],
    [
      "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
      "8286 84be 5886 a8eb 1064 9cbf",
      "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
    ],
  ]) {
    const decoder = new HpackDecoder();
    const read = blocks.map((block) => lines(decode(decoder, hex(block))));
    assert.equal(read, requests);
  }
});

const redirect = [
  ":status: 302",
  "cache-control: private",
  "date: Mon, 21 Oct 2013 20:13:21 GMT",
  "location: https://www.example.com",
];
const responses = [
  redirect,
  [":status: 307", ...redirect.slice(1)],
  [
    ":status: 200",
    "cache-control: private",
    "date: Mon, 21 Oct 2013 20:13:22 GMT",
    "location: https://www.example.com",
    "content-encoding: gzip",
    "set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
  ],
];

test("three responses that evict one another in a table of 256 bytes (RFC 7541 C.5, C.6)", () => {
  for (const blocks of [
    [
      `4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32
       3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d`,
      "4803 3330 37c1 c0bf",
      `88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970
       7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61
       6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31`,
    ],
    [
      `4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad
       1718 63c7 8f0b 97c8 e9ae 82ae 43d3`,
      "4883 640e ffc1 c0bf",
      `88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2
       e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07`,
    ],
  ]) {
    const decoder = new HpackDecoder(256);
    const read = blocks.map((block) => lines(decode(decoder, hex(block))));
    assert.equal(read, responses);
  }
});

test("a repeated field is the very same object, in one block and in the next", () => {
  const decoder = new HpackDecoder();
  const [first, again] = decode(decoder, Buffer.concat([literal(0x40, "user-agent", "kubelet"), hex("be")]));
  assert.is(first, again);
  assert.is(decode(decoder, hex("be"))[0], first);
});

test("a credential that is sent whole again is the same object, another one is not", () => {
  const decoder = new HpackDecoder();
  const secret = (value: string): Buffer => Buffer.concat([hex("1f08"), plainString(value)]);
  const [first] = decode(decoder, secret("Bearer one"));
  const [again] = decode(decoder, Buffer.concat([hex("82"), secret("Bearer one")])).slice(-1);
  assert.is(again, first);
  for (const value of ["Bearer two", "Bearer one and more", "Bearer on", "Bearer one"]) {
    const [field] = decode(decoder, secret(value));
    assert.equal([field?.name, field?.value], ["authorization", value]);
    assert.ok(field?.isNeverIndexed);
  }
});

test("a never indexed field whose name is in the dynamic table follows that table", () => {
  const decoder = new HpackDecoder();
  const block = Buffer.concat([hex("1f2f"), plainString("v")]);
  for (const name of ["a", "b"]) {
    decode(decoder, Buffer.concat([hex("40"), plainString(name), plainString("x")]));
    assert.is(decode(decoder, block)[0]?.name, name);
  }
});

test("a name may be that of the entry which its field evicts (RFC 7541 §4.4)", () => {
  const decoder = new HpackDecoder(64);
  decode(decoder, literal(0x40, "name", "one"));
  assert.equal(lines(decode(decoder, Buffer.concat([hex("7e"), plainString("x".repeat(20))]))), [
    `name: ${"x".repeat(20)}`,
  ]);
  assert.is(decode(decoder, hex("be"))[0]?.value.length, 20);
});

test("an index of no entry is refused: 0, and beyond what the table holds (A9)", () => {
  for (const block of ["80", "be", "ff00", "7e 01 78", "0f 2f 01 78"]) refuses(hex(block), "index");
  const decoder = new HpackDecoder();
  decode(decoder, literal(0x40, "a", "b"));
  decode(decoder, hex("be"));
  refuses(hex("bf"), "index", decoder);
});

test("an index is refused once a smaller table has evicted it", () => {
  const decoder = new HpackDecoder();
  decode(decoder, literal(0x40, "a", "b"));
  refuses(hex("20 be"), "index", decoder);
});

test("an integer is read with needless bytes up to its bound, and not beyond (A9)", () => {
  assert.equal(lines(decode(new HpackDecoder(), hex("82 0f 80 80 80 00 01 78"))), [
    ":method: GET",
    "accept-charset: x",
  ]);
  refuses(hex("0f 80 80 80 80 00 01 78"), "Integer");
  refuses(hex("ff ff ff ff ff ff ff ff ff ff 7f"), "Integer");
  refuses(hex("7f 80 80 80 80 80 80 80 80 80 00"), "Integer");
});

test("a block that ends too early is refused at every place", () => {
  const whole = Buffer.concat([
    literal(0x40, "x-name", "v".repeat(200)),
    hex("7e 81 1f"),
    integer(0x80, 0x7f, 62),
  ]);
  const ends = new Set([0, 1 + 7 + 2 + 200, 1 + 7 + 2 + 200 + 3, whole.length]);
  for (let length = 0; length <= whole.length; length++) {
    const block = whole.subarray(0, length);
    if (ends.has(length)) decode(new HpackDecoder(), block);
    else assert.throws(() => decode(new HpackDecoder(), block), /Block ends/, `${length} bytes`);
  }
});

test("bytes after the block's end are not read", () => {
  const decoder = new HpackDecoder();
  const bytes = Buffer.concat([hex("82"), literal(0x00, "a", "b"), hex("84")]);
  assert.equal(lines(decoder.decode(bytes, 1, bytes.length - 1)), ["a: b"]);
  assert.throws(() => decoder.decode(bytes, 1, bytes.length - 2), /Block ends inside a string/);
});

test("Huffman code that is not one is refused (A9)", () => {
  for (const coded of ["ff ff ff ff", "ff", "00 ff ff", "1f fe"])
    refuses(Buffer.concat([hex("00 01 61"), integer(0x80, 0x7f, hex(coded).length), hex(coded)]), "Huffman");
});

test("a table size update stands at the start, is no more than advertised, and comes twice at most (A9)", () => {
  decode(new HpackDecoder(), hex("20 3fe11f 82"));
  refuses(hex("82 20"), "after a field");
  refuses(hex("20 20 20"), "More than 2");
  refuses(hex("3fe21f"), "beyond the 4096");
  refuses(integer(0x20, 0x1f, 257), "beyond the 256", new HpackDecoder(256));
});

/** A header block with one entry of 4 KB, followed by this many one-byte references to it. */
function bomb(references: number): Buffer {
  return Buffer.concat([literal(0x40, "cookie", "c".repeat(4000)), Buffer.alloc(references, 0xbe)]);
}

test("a bomb of one-byte references is cut at the limit, in little time and memory (A7)", () => {
  const decoder = new HpackDecoder();
  const block = bomb(h2Limits.headerBlockBytes - 4100);
  decode(decoder, block);
  const heapBefore = process.memoryUsage().heapUsed;
  const list = decode(decoder, block);
  assert.ok(process.memoryUsage().heapUsed - heapBefore < 1_000_000);
  const tookMs = fastestMs(() => decode(decoder, block));
  assert.ok(decoder.isOversize);
  assert.is(list.length, Math.floor(limits.headerListBytes / (4000 + 6 + 32)));
  assert.ok(tookMs < 20, `${tookMs} ms`);
  figure(`${block.length} bytes of HPACK bomb decoded in ${tookMs.toFixed(2)} ms`);
});

test("a block of huge names by reference costs little, as what is cut off is not looked at (A7)", () => {
  const decoder = new HpackDecoder();
  decode(decoder, literal(0x40, "n".repeat(4000), ""));
  const block = Buffer.concat(Array.from({ length: 70_000 }, () => hex("7e 00")));
  const tookMs = fastestMs(() => decode(decoder, block));
  assert.ok(decoder.isOversize);
  assert.ok(tookMs < 300, `${tookMs} ms`);
});

test("each field counts as 32 bytes more: the last within the limit is there, the next is cut (A7)", () => {
  const decoder = new HpackDecoder();
  const most = Math.floor(limits.headerListBytes / (":method".length + "GET".length + 32));
  assert.is(decode(decoder, Buffer.alloc(most, 0x82)).length, most);
  assert.not(decoder.isOversize);
  assert.is(decode(decoder, Buffer.alloc(limits.headerFields, 0x82)).length, most);
  assert.ok(decoder.isOversize);
});

test("bytes are counted to the last one, for plain, Huffman-coded and indexed fields alike", () => {
  // A single field may not be as long as a whole list, so two other fields fill most of the list.
  const others = Array.from({ length: 2 }, () =>
    Buffer.concat([hex("00 01 61"), plainString("0".repeat(60_000))]),
  );
  const room = limits.headerListBytes - 2 * 60_033 - 32 - 1;
  for (const [length, isOversize] of [
    [room, false],
    [room + 1, true],
  ] as const) {
    const plain = Buffer.concat([hex("00 01 61"), plainString("0".repeat(length))]);
    const coded = huffmanEncode(Buffer.alloc(length, 0x30));
    const huffman = Buffer.concat([hex("00 01 61"), integer(0x80, 0x7f, coded.length), coded]);
    for (const block of [plain, huffman]) {
      const decoder = new HpackDecoder();
      assert.is(decode(decoder, Buffer.concat([...others, block])).length, isOversize ? 2 : 3);
      assert.is(decoder.isOversize, isOversize);
    }
  }
});

test("one string of 64 KiB is read, one byte more cuts its list (A7)", () => {
  for (const [length, isOversize] of [
    [limits.fieldBytes, false],
    [limits.fieldBytes + 1, true],
  ] as const) {
    const decoder = new HpackDecoder();
    decode(decoder, Buffer.concat([hex("00 01 61"), plainString("0".repeat(length))]));
    assert.is(decoder.isOversize, isOversize);
  }
});

test("after a cut list the table is right, and the next block is whole", () => {
  const decoder = new HpackDecoder();
  const late = literal(0x40, "x-late", "kept");
  const list = decode(decoder, Buffer.concat([bomb(100), late]));
  assert.ok(decoder.isOversize);
  assert.not(list.some(({ name }) => name === "x-late"));
  assert.equal(lines(decode(decoder, hex("be"))), ["x-late: kept"]);
  assert.not(decoder.isOversize);
});

test("what follows a cut is still checked", () => {
  refuses(Buffer.concat([bomb(100), hex("80")]), "index");
  refuses(Buffer.concat([bomb(100), hex("00 01 61 81 00")]), "Huffman");
});

test("a heavy honest user passes: 400 groups, a 12 KiB token, 30 cookies (A8)", () => {
  const decoder = new HpackDecoder();
  const block = Buffer.concat([
    literal(0x10, "authorization", `Bearer ${"t".repeat(12 * 1024)}`),
    ...Array.from({ length: 400 }, (_, at) => literal(0x10, "impersonate-group", `group,${at}`)),
    ...Array.from({ length: 30 }, (_, at) => literal(0x10, "cookie", `c${at}=${"x".repeat(500)}`)),
  ]);
  const list = decode(decoder, block);
  assert.not(decoder.isOversize);
  assert.is(list.length, 431);
  assert.is(list[400]?.value, "group,399");
});

test.run();
