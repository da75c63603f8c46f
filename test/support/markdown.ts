/** Writes and reads the lists of generated pages. */

/** Returns an item of a list, wrapped at 120 columns. */
export function listItem(text: string): string {
  const lines: string[] = [];
  for (const word of `- ${text}`.split(" ")) {
    const line = lines.at(-1);
    if (line !== undefined && `${line} ${word}`.length <= 120) lines[lines.length - 1] = `${line} ${word}`;
    else lines.push(line === undefined ? word : `  ${word}`);
  }
  return `${lines.join("\n")}\n`;
}

/** Returns the page with each item of a list on one line. */
export function unwrapped(page: string): string {
  return page.replaceAll(/\n {2}(?=\S)/g, " ");
}
