import type { ListDialect } from './dialect.ts'

/**
 * Writes rows of a list as JSON objects: the cells by the names of their columns, in the order of the
 * columns. A name that comes again gets `_2`, `_3`; a column without a name has its number, from 1.
 * Every row has all columns of the list, and those beyond them that it has itself.
 */
export function createRowObject(dialect: ListDialect): (cells: readonly string[]) => string {
  const names = columnNames(dialect)
  const taken = new Set(names)
  const keys = names.map(name => `${JSON.stringify(name)}:`)
  // Written by hand: an object of JavaScript would put number-like names first, and lose `__proto__`.
  return cells => {
    let text = '{'
    for (let i = 0; i < Math.max(keys.length, cells.length); i += 1) {
      const key = keys[i] ?? `"${freeName(String(i + 1), taken)}":`
      text += `${i === 0 ? '' : ','}${key}${JSON.stringify((cells[i] ?? '').toWellFormed())}`
    }
    return `${text}}`
  }
}

function columnNames({ header, width }: ListDialect): string[] {
  const names = Array.from({ length: width }, (_, i) => {
    const name = header?.[i] ?? ''
    return name.trim() === '' ? String(i + 1) : name.toWellFormed()
  })
  return deduplicated(names)
}

function deduplicated(names: readonly string[]): string[] {
  // A later column keeps a name that is its own.
  const taken = new Set(names)
  const seen = new Set<string>()
  const next = new Map<string, number>()
  return names.map(name => {
    if (!seen.has(name)) {
      seen.add(name)
      return name
    }
    const free = freeName(name, taken, next.get(name))
    taken.add(free)
    // Thousands of columns of one name would otherwise cost a square.
    next.set(name, Number(free.slice(name.length + 1)) + 1)
    return free
  })
}

/** The name itself, or with the first number behind it that makes it another than all taken ones. */
function freeName(name: string, taken: ReadonlySet<string>, from = 2): string {
  if (!taken.has(name)) return name
  let number = from
  while (taken.has(`${name}_${number}`)) number += 1
  return `${name}_${number}`
}
