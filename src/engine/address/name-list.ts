import { readFileSync } from 'node:fs'

/** Built-in lists (tools/bake-lists.mjs): one name per line, ASCII, sorted by bytes. */
type ListName = 'disposable' | 'free' | 'role'

const NEWLINE = 0x0a
const bytesOf = new Map<ListName, Buffer>()

/**
 * Whether `name`, in lower case, is on the list. The file is read at the first lookup and searched
 * in place: a Set of 138,000 names would cost 60 ms and 15 MB at every start.
 */
export function isListed(list: ListName, name: string): boolean {
  if (list === 'role') return roleNames().has(name)
  const bytes = load(list)
  let low = 0
  let high = bytes.length
  while (low < high) {
    const start = lineStart(bytes, (low + high) >>> 1)
    const order = compareLine(bytes, start, name)
    if (order === 0) return true
    if (order > 0) high = start
    else low = nextLine(bytes, start)
  }
  return false
}

function lineStart(bytes: Buffer, at: number): number {
  let start = at
  while (start > 0 && bytes[start - 1] !== NEWLINE) start--
  return start
}

/** A loop, because for a dozen bytes a call of `indexOf` costs ten times as much. */
function nextLine(bytes: Buffer, at: number): number {
  let end = at
  while (end < bytes.length && bytes[end] !== NEWLINE) end++
  return end + 1
}

/** Compares the line at `start` with `name`; negative if the line sorts first. */
function compareLine(bytes: Buffer, start: number, name: string): number {
  for (let index = 0; index < name.length; index++) {
    const order = (bytes[start + index] ?? NEWLINE) - name.charCodeAt(index)
    if (order !== 0) return order
  }
  return bytes[start + name.length] === NEWLINE ? 0 : 1
}

/** Returns the name and its parent domains, longest first, without the last label alone. */
export function withParents(domain: string): string[] {
  const names: string[] = []
  let start = 0
  for (let dot = domain.indexOf('.'); dot >= 0; dot = domain.indexOf('.', start)) {
    names.push(domain.slice(start))
    start = dot + 1
  }
  return names
}

let roles: ReadonlySet<string> | undefined

/** The role list is short and used for every word of every address, so it is a Set (0.3 ms). */
function roleNames(): ReadonlySet<string> {
  roles ??= new Set(load('role').toString('latin1').trimEnd().split('\n'))
  return roles
}

function load(list: ListName): Buffer {
  const known = bytesOf.get(list)
  if (known !== undefined) return known
  const bytes = readFileSync(new URL(`./lists/${list}.txt`, import.meta.url))
  bytesOf.set(list, bytes)
  return bytes
}
