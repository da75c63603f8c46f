/**
 * Prints a measured value for the test runner to show. It starts with a line break, because uvu leaves its line of dots
 * open.
 */
export function figure(text: string): void {
  process.stdout.write(`\nfigure: ${text}\n`);
}
