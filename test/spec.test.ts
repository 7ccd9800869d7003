import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'

// docs/contributing/spec.md names the tests of each requirement, which must exist.

const ROOT = join(import.meta.dirname, '..')

type Row = { readonly section: string; readonly requirement: string; readonly tested: string }

const rows = readFileSync(join(ROOT, 'docs/contributing/spec.md'), 'utf8')
  .split('\n')
  .flatMap((line): Row[] => {
    const [, section = '', requirement = '', tested = ''] = cells(line)
    return /^\d/.test(section) ? [{ section, requirement, tested }] : []
  })

/** The sections with requirements, fields or limits. */
const SECTIONS = [
  ...['1.1', '1.2', '1.3', '1.4', '1.5', '1.6', '1.7'],
  ...['2.1', '2.2', '2.3', '2.4', '2.5', '2.6', '2.7', '2.8', '3.1', '3.2'],
  ...['4', '4.1', '4.2', '4.3', '4.4', '4.5', '4.6', '4.7', '4.8'],
  ...['4.9.1', '4.9.2', '4.9.3', '4.9.4', '4.9.5', '4.9.6', '4.9.7'],
  ...['5.1', '5.2', '5.3', '5.4', '5.5', '6', '6.1', '6.2', '6.3', '6.4', '6.5', '6.6'],
  ...['7', '8', '8.1', '8.2', '8.3', '9.1'],
]

test('each section of the specification has its rows', () => {
  expect([...new Set(rows.map(({ section }) => section))].toSorted()).toEqual(SECTIONS.toSorted())
})

describe('a row names existing tests', () => {
  test.each(rows.map(row => [row.section, row.requirement, row.tested] as const))(
    '§%s %s',
    (_, __, tested) => {
      const parts = tested.split('<br>')
      const named = parts.flatMap(part => [...part.matchAll(/^`([^`]+\.test\.ts)` (.+)$/g)])
      expect(named.length, 'tests named').toBeGreaterThan(0)
      for (const [, file = '', title = ''] of named) {
        const path = join(ROOT, 'test', file)
        expect(existsSync(path), file).toBe(true)
        expect(hasTitle(readFileSync(path, 'utf8'), title), `${file}: ${title}`).toBe(true)
      }
    },
  )
})

/** Whether the source has the title as a string. */
const hasTitle = (source: string, title: string) =>
  [`'${title}'`, `"${title}"`, `\`${title}\``].some(quoted => source.includes(quoted))

function cells(line: string): string[] {
  return line.split('|').map(cell => cell.trim())
}
