/**
 * Returns the address of a page of the documentation, because users of the image or the executable have no folder docs.
 * `path` is relative to the folder docs of the repository.
 */
export function docsPage(path: string): string {
  return `https://watchkeeper.dev/docs/${path}`;
}
