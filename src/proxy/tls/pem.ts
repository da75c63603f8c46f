/** PEM files as Secrets hold them: certificates, keys and remarks in any order. Pure, and linear in the file's size. */
export type PemBlock = {
  /** "CERTIFICATE", "EC PRIVATE KEY", ... */
  readonly type: string;
  readonly text: string;
  /** False when the file ends before the block does: somebody is still writing. */
  readonly isWhole: boolean;
};

/** What stands outside of blocks is remarks (`openssl x509 -text` writes pages of them). */
export function splitPem(text: string): readonly PemBlock[] {
  const blocks: PemBlock[] = [];
  let type: string | undefined;
  let lines: string[] = [];
  for (const line of text.split(/\r?\n/)) {
    const [, edge, name = ""] = /^\s*-----(BEGIN|END) ([A-Z0-9 ]{1,60})-----\s*$/.exec(line) ?? [];
    if (edge === "BEGIN") {
      if (type !== undefined) blocks.push({ type, text: lines.join("\n"), isWhole: false });
      type = name;
      lines = [];
    }
    if (type === undefined) continue;
    lines.push(line.trim());
    if (edge !== "END" || name !== type) continue;
    blocks.push({ type, text: `${lines.join("\n")}\n`, isWhole: true });
    type = undefined;
  }
  if (type !== undefined) blocks.push({ type, text: lines.join("\n"), isWhole: false });
  return blocks;
}
