import { existsSync, globSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { LIST_COLUMNS } from '../src/engine/verdict/present-result.ts'
import { anchors, ROOT, readDoc, withoutCode } from './support/markdown.ts'

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

function exists(page: string, target: string): boolean {
  const [file = '', anchor] = target.split('#')
  const path = file === '' ? page : join(dirname(page), file)
  if (!existsSync(join(ROOT, path))) return false
  return anchor === undefined || anchors(path).has(anchor)
}
