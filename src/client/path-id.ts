/**
 * Encodes an ID as one segment of a path. Throws a TypeError for what cannot be an ID: an empty
 * text, and `.` and `..`, which a URL resolves to another path, encoded or not.
 */
export function encodeId(id: string): string {
  if (typeof id !== 'string' || id === '' || id === '.' || id === '..') {
    throw new TypeError(`${JSON.stringify(id)} is not an ID.`)
  }
  return encodeURIComponent(id)
}
