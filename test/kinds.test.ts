import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { expect, test } from 'vitest'

// The table "What tests go through" of docs/testing.md. A test that goes through a public door, or
// compares a pure function with a table, survives a new design of what lies behind it.

const ROOT = join(import.meta.dirname, '..')

/** Lowest share of test lines in files of the first two kinds, in percent. Raise it, never lower it. */
const SHARE_MIN = 79

/** What users import, and what tests need to talk to a program. */
const PUBLIC = /^src\/(index\.ts|client\/|simulator\/|platform\/)/
/** Modules with access to the outside world: a function that imports none of them is pure. */
const EFFECTS =
  /from '(node:(net|tls|http|https|http2|dgram|fs|fs\/promises|child_process)|kysely|better-sqlite3|pg|pg-boss|undici|hono|nodemailer)'/
/** Imports of such modules that do nothing outside: types, and what compares IP addresses. */
const HARMLESS = /^import (type [^\n]*|\{ (BlockList|isIP|isIPv4|isIPv6|, )+ \} from 'node:net'$)/gm
/** Modules that read only files of their own package: the same answer for everyone, always. */
const READS_PACKAGE = new Set(['src/csv/encoding.ts', 'src/engine/address/name-list.ts'])
const IMPORT =
  /^(?:import|export)\s+(type\s+)?(\{[^}]*\}|[^'{]*)\s*from\s*'(\.[^']+\.ts)'|import\('(\.[^']+\.ts)'\)/gm

type Import = { readonly path: string; readonly isConstant: boolean }

/** The imports of a file without types. */
function importsOf(path: string): Import[] {
  const text = readFileSync(join(ROOT, path), 'utf8')
  return [...text.matchAll(IMPORT)].flatMap(([, type, names = '', from, loaded]) => {
    const values = names
      .replaceAll(/[{}]/g, '')
      .split(',')
      .map(name => name.trim())
      .filter(name => name !== '' && !name.startsWith('type '))
    if (type !== undefined || (loaded === undefined && values.length === 0)) return []
    const isConstant = loaded === undefined && values.every(name => /^[A-Z][A-Z\d_]*$/.test(name))
    return [{ path: join(dirname(path), from ?? loaded ?? ''), isConstant }]
  })
}

const purity = new Map<string, boolean>()

/** Returns true if a module of the source imports nothing with effects, directly or indirectly. */
function isPure(path: string): boolean {
  const known = purity.get(path)
  if (known !== undefined) return known
  // Also ends a cycle.
  purity.set(path, true)
  const text = readFileSync(join(ROOT, path), 'utf8').replaceAll(HARMLESS, '')
  const hasEffects = EFFECTS.test(text) && !READS_PACKAGE.has(path)
  const pure = !hasEffects && importsOf(path).every(one => isPure(one.path))
  purity.set(path, pure)
  return pure
}

type Kind = 'door' | 'pure' | 'inside'

function kindOf(path: string): Kind {
  // A constant, such as a limit, is what a test compares with.
  const used = importsOf(path).filter(one => one.path.startsWith('src/') && !one.isConstant)
  const inner = used.filter(one => !PUBLIC.test(one.path))
  if (inner.length === 0) return 'door'
  return inner.every(one => isPure(one.path)) ? 'pure' : 'inside'
}

test('tests go through public doors or compare pure functions', () => {
  const lines: Record<Kind, number> = { door: 0, pure: 0, inside: 0 }
  for (const name of readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.test.ts')) continue
    const path = relative(ROOT, join(import.meta.dirname, name))
    lines[kindOf(path)] += readFileSync(join(ROOT, path), 'utf8').split('\n').length - 1
  }
  const all = lines.door + lines.pure + lines.inside
  const share = (100 * (lines.door + lines.pure)) / all
  expect(all).toBeGreaterThan(50_000)
  expect(share, JSON.stringify(lines)).toBeGreaterThanOrEqual(SHARE_MIN)
})
