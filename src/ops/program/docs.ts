/**
 * Returns the command that prints a page of the documentation, because no site serves the pages. `path` is relative to
 * `docs`.
 */
export function docsPage(path: string): string {
  return `watchkeeper docs ${path.replace(/\.md$/, "")}`;
}

/** Returns the command that prints an alert's runbook. */
export function runbookPage(alert: string): string {
  return docsPage(`runbooks/${alert}.md`);
}
