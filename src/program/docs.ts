/** Returns a page's public URL, because the executable has no docs. `path` is relative to `docs`. */
export function docsPage(path: string): string {
  return `https://watchkeeper.dev/docs/${path}`;
}

/** Returns the public URL of an alert's runbook. */
export function runbookUrl(alert: string): string {
  return docsPage(`runbooks/${alert}.md`);
}
