import { existsSync, globSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { LIST_COLUMNS } from '../src/engine/verdict/present-result.ts'
import { anchors, ROOT, readDoc, withoutCode } from './support/markdown.ts'
import { LOG_EVENTS, METRICS } from './support/telemetry.ts'

// Links, the index and some facts of the documentation.

const pages = ['*.md', 'docs/**/*.md', 'bench/*.md', 'test/chaos/*.md'].flatMap(pattern =>
  globSync(pattern, { cwd: ROOT }),
)

test('there are pages', () => {
  expect(pages.length).toBeGreaterThan(25)
})

describe.each(pages)('%s', page => {
  const text = withoutCode(readDoc(page))
  const links = [...text.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = '']) => target)
    .filter(target => !/^\w+:/.test(target))

  test('links only to files and headings that exist', () => {
    expect(links.filter(target => !exists(page, target))).toEqual([])
  })
})

test('docs/README.md links to every page of docs/', () => {
  const index = readDoc('docs/README.md')
  const missing = globSync('docs/*.md', { cwd: ROOT })
    .map(path => path.slice('docs/'.length))
    .filter(name => name !== 'README.md' && !index.includes(`](${name})`))
  expect(missing).toEqual([])
})

test('every picture is on a page', () => {
  const shown = pages.map(readDoc).join('\n')
  const names = globSync('docs/screenshots/*.png', { cwd: ROOT }).map(path => basename(path))
  expect(names.filter(name => !shown.includes(`screenshots/${name})`))).toEqual([])
})

test('docs/cli.md names the columns of a list in their order', () => {
  expect(readDoc('docs/cli.md').match(/(?<=`)ev_\w+(?=`)/g)).toEqual([...LIST_COLUMNS])
})

describe('docs/logs.md', () => {
  const listed = [...readDoc('docs/logs.md').matchAll(/^\| `([^`…]+)(…?)`/gm)]
  const isListed = (message: string) =>
    listed.some(([, text = '', more]) => text === message || (more && message.startsWith(text)))
  const warnings = LOG_EVENTS.filter(({ level }) => level === 'warn' || level === 'error')

  test('lists each warning and error', () => {
    expect(warnings.length).toBeGreaterThan(70)
    const missing = warnings.map(({ message }) => message).filter(message => !isListed(message))
    expect(missing).toEqual([])
  })

  test('lists nothing else', () => {
    const extra = listed.filter(
      ([, text = '']) => !warnings.some(({ message }) => message.startsWith(text)),
    )
    expect(extra.map(([, text]) => text)).toEqual([])
  })
})

test('docs/metrics.md lists each metric with its labels and its help', () => {
  const rows = METRICS.map(({ name, labelNames = [], help }) => {
    const labels = labelNames.map(label => `\`${label}\``).join(', ')
    return `| \`${name}\` | ${labels} | ${help} |`
  })
  expect(METRICS.length).toBeGreaterThan(15)
  const listed = readDoc('docs/metrics.md').match(/^\| `ev_.*$/gm) ?? []
  expect(listed.toSorted()).toEqual(rows.toSorted())
})

/** The pages for users. */
const USER_PAGES = ['README.md', 'docs/*.md', 'docs/recipes/*.md'].flatMap(pattern =>
  globSync(pattern, { cwd: ROOT }),
)

/** Phrases that read as translated, and what to write instead. */
const TRANSLATED: readonly [pattern: RegExp, instead: string][] = [
  [/\bverif(y|ies|ied) (it |them |(a|the) list |lists )?again\b/i, 're-verify'],
  [/, too[.;:]/, 'also'],
  [/\bis done\b/, 'is finished'],
  [/\bsome \d/, 'about'],
  [/\bmeanwhile\b/i, 'in the meantime'],
  [/\bwhatever\b/i, 'even if, regardless of'],
  [/\bof (yours|theirs)\b/, 'your, their'],
  [/\b(there )?are no (?!longer)/, "aren't, without"],
]

test.each(TRANSLATED)('no page and no text of the API has %s: write "%s"', pattern => {
  const texts = [...USER_PAGES.map(page => withoutCode(readDoc(page))), apiTexts()]
  const lines = texts.flatMap(text => text.split('\n'))
  expect(lines.filter(line => pattern.test(line))).toEqual([])
})

/** Returns the summaries and descriptions of the OpenAPI document, one a line. */
function apiTexts(): string {
  const texts: string[] = []
  JSON.parse(readDoc('docs/openapi.json'), (key, value) => {
    if ((key === 'description' || key === 'summary') && typeof value === 'string') texts.push(value)
    return value
  })
  return texts.join('\n')
}

function exists(page: string, target: string): boolean {
  const [file = '', anchor] = target.split('#')
  const path = file === '' ? page : join(dirname(page), file)
  if (!existsSync(join(ROOT, path))) return false
  return anchor === undefined || anchors(path).has(anchor)
}
