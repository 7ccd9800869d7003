import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseRegExpLiteral, visitRegExpAST } from '@eslint-community/regexpp'
import type { Flags, Quantifier } from '@eslint-community/regexpp/ast'
import { getFirstConsumedChar } from 'regexp-ast-analysis'
import { parseAst } from 'rolldown/parseAst'
import { analyse } from 'scslre'
import { expect, test } from 'vitest'

const SOURCE = join(import.meta.dirname, '../src')

/** Patterns that take more than linear time on inputs of a stated maximum, by their file. */
const BOUNDED: Readonly<Record<string, string>> = {
  'engine/address/classifier.ts': 'a local part has at most 64 octets',
  'engine/address/suggestion.ts': 'REPAIRED_LENGTH_MAX',
}

type Pattern = { readonly file: string; readonly source: string; readonly flags: string }

type Node = {
  readonly type?: string
  readonly regex?: { readonly pattern: string; readonly flags: string }
  readonly callee?: { readonly name?: string }
}

/**
 * Returns the regular expressions in the source, and the files of the folders where some are built
 * at run time.
 */
function readPatterns() {
  const patterns: Pattern[] = []
  const building = new Set<string>()
  const visit = (file: string, node: unknown): void => {
    if (typeof node !== 'object' || node === null) return
    const { type, regex, callee } = node as Node
    if (type === 'Literal' && regex !== undefined)
      patterns.push({ file, source: regex.pattern, flags: regex.flags })
    if (callee?.name === 'RegExp') building.add(file)
    for (const child of Object.values(node)) visit(file, child)
  }
  const files = readdirSync(SOURCE, { recursive: true, encoding: 'utf8' })
  const sources = files.filter(name => name.endsWith('.ts'))
  for (const file of sources)
    visit(file, parseAst(readFileSync(join(SOURCE, file), 'utf8'), { lang: 'ts' }))
  const folders = new Set([...building].map(dirname))
  return { patterns, building: sources.filter(file => folders.has(dirname(file))) }
}

/** Loads modules and returns the regular expressions that they build meanwhile. */
async function recordPatterns(files: readonly string[]): Promise<Pattern[]> {
  const recorded: Pattern[] = []
  const original = globalThis.RegExp
  for (const file of files) {
    globalThis.RegExp = new Proxy(original, {
      construct(target, parts, newTarget) {
        const built = Reflect.construct(target, parts, newTarget) as RegExp
        // Packages build some too.
        const caller = new Error().stack?.split('\n')[2] ?? ''
        if (caller.includes('/src/'))
          recorded.push({ file, source: built.source, flags: built.flags })
        return built
      },
    })
    try {
      // With a query it is loaded even if another module has loaded it.
      await import(`${join(SOURCE, file)}?recorded`)
    } finally {
      globalThis.RegExp = original
    }
  }
  return recorded
}

/** Returns why a pattern can take more than linear time; null if it cannot. */
function findFault({ source, flags }: Pattern): string | null {
  const { reports } = analyse({ source, flags })
  const [first] = reports
  if (first !== undefined) return `${first.exponential ? 'exponential' : 'polynomial'} time`
  return hasAmbiguousRepetition({ source, flags }) ? 'exponential time' : null
}

/**
 * Whether two alternatives of a repeated group can start with the same character: a text of n of
 * these characters then matches in up to 2^n ways. scslre does not look at alternatives.
 */
function hasAmbiguousRepetition({ source, flags }: Pick<Pattern, 'source' | 'flags'>): boolean {
  const literal = parseRegExpLiteral(`/${source}/${flags}`)
  let isAmbiguous = false
  const onQuantifierEnter = (quantifier: Quantifier) => {
    isAmbiguous ||= quantifier.max > 1 && hasCommonStart(quantifier, literal.flags)
  }
  visitRegExpAST(literal, { onQuantifierEnter })
  return isAmbiguous
}

function hasCommonStart({ element }: Quantifier, flags: Flags): boolean {
  if (element.type !== 'Group' && element.type !== 'CapturingGroup') return false
  const starts = element.alternatives.map(one => getFirstConsumedChar(one, 'ltr', flags).char)
  return starts.some((start, n) => starts.slice(0, n).some(other => !start.isDisjointWith(other)))
}

const describeFaults = (patterns: readonly Pattern[]) =>
  patterns.flatMap(pattern => {
    const fault = findFault(pattern)
    return fault === null ? [] : [`${pattern.file}: ${fault}: /${pattern.source}/${pattern.flags}`]
  })

const { patterns, building } = readPatterns()

test('no regular expression takes more than linear time on a text of any length', () => {
  expect(patterns.length).toBeGreaterThan(800)
  const faults = describeFaults(patterns.filter(({ file }) => !(file in BOUNDED)))
  expect(faults).toEqual([])
})

test('nor does one that is built when its module is loaded', async () => {
  const recorded = await recordPatterns(building)
  expect(recorded.length).toBeGreaterThan(30)
  expect(describeFaults(recorded)).toEqual([])
})

test('an exception is needed', () => {
  const faulty = new Set(patterns.filter(one => findFault(one) !== null).map(({ file }) => file))
  expect([...faulty].toSorted()).toEqual(Object.keys(BOUNDED))
})

test.each(['^(a+)+$', '/+$', 'json *;? *$', '^\\S*@\\S*$', '^(?:[\\w ]|[.! ])*$'])(
  '/%s/ would be found',
  source => {
    expect(findFault({ file: '', source, flags: '' })).not.toBeNull()
  },
)
