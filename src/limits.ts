/**
 * Every number that bounds something, with its reason. What an operator may change is in config; what is here keeps
 * the process alive whatever the config says. Row names (A1 ...) are those of the attack tests.
 */
const KiB = 1024;

export const limits = {
  /** A8's honest user (400 groups, a 12 KiB token) needs 40 KiB; the apiserver itself would take 1 MiB (A7). */
  headerListBytes: 128 * KiB,
  headerFields: 1024,
  /** Compressed octets of one block, and CONTINUATION frames: decoding stops at either (A5). */
  headerBlockBytes: 144 * KiB,
  continuationFrames: 8,
  /** From a block's first octet to its last (A6). */
  headerBlockMs: 10_000,
  /** RFC 7541's default; more only helps an attacker (A9). */
  hpackTableBytes: 4096,
  hpackSizeUpdates: 2,
  /** Beyond it a field is sent literally: it would push everything else out of the table. */
  hpackIndexedBytes: 2048,
  /** 64 backends with long names take 10 KiB; parsing this much takes 0.3 s at worst, beside live traffic. */
  configBytes: 256 * KiB,
  /** Our own shape is five levels deep; deeper only tries the parser's stack. */
  configDepth: 16,
  /** More lines than this are not read by anyone. */
  configProblems: 50,
} as const;
