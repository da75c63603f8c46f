/** A measured fact for the runner to show. On a line of its own: uvu leaves the line with its dots open. */
export function figure(text: string): void {
  process.stdout.write(`\nfigure: ${text}\n`);
}
