/** Returns the value at a path in parsed JSON; undefined if there is none. */
export function valueAt(value: unknown, ...path: readonly string[]): unknown {
  let found = value
  for (const name of path) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, name)) return undefined
    found = (found as Record<string, unknown>)[name]
  }
  return found
}

/** Returns the text or the number at a path, as text; undefined if there is none. */
export function textAt(value: unknown, ...path: readonly string[]): string | undefined {
  const found = valueAt(value, ...path)
  return typeof found === 'string' || typeof found === 'number' ? String(found) : undefined
}

/** Returns the array at a path; empty if there is none. */
export function listAt(value: unknown, ...path: readonly string[]): readonly unknown[] {
  const found = valueAt(value, ...path)
  return Array.isArray(found) ? found : []
}
