import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

/** The numbers of the requirements of levels 1 and 2 of OWASP ASVS 5.0.0, by section. */
const REQUIREMENTS: Readonly<Record<string, string>> = {
  '1.1': '1-2',
  '1.2': '1-9',
  '1.3': '1-11',
  '1.4': '1-3',
  '1.5': '1-2',
  '2.1': '1-3',
  '2.2': '1-3',
  '2.3': '1-4',
  '2.4': '1',
  '3.2': '1-2',
  '3.3': '1-4',
  '3.4': '1-6',
  '3.5': '1-5',
  '3.7': '1-2',
  '4.1': '1-3',
  '4.2': '1',
  '4.3': '1-2',
  '4.4': '1-4',
  '5.1': '1',
  '5.2': '1-3',
  '5.3': '1-2',
  '5.4': '1-3',
  '6.1': '1-3',
  '6.2': '1-12',
  '6.3': '1-4',
  '6.4': '1-4',
  '6.5': '1-5',
  '6.6': '1-3',
  '6.8': '1-4',
  '7.1': '1-3',
  '7.2': '1-4',
  '7.3': '1-2',
  '7.4': '1-5',
  '7.5': '1-2',
  '7.6': '1-2',
  '8.1': '1-2',
  '8.2': '1-3',
  '8.3': '1',
  '8.4': '1',
  '9.1': '1-3',
  '9.2': '1-4',
  '10.1': '1-2',
  '10.2': '1-2',
  '10.3': '1-4',
  '10.4': '1-11',
  '10.5': '1-5',
  '10.6': '1-2',
  '10.7': '1-3',
  '11.1': '1-2',
  '11.2': '1-3',
  '11.3': '1-3',
  '11.4': '1-4',
  '11.5': '1',
  '11.6': '1',
  '12.1': '1-3',
  '12.2': '1-2',
  '12.3': '1-4',
  '13.1': '1',
  '13.2': '1-5',
  '13.3': '1-2',
  '13.4': '1-5',
  '14.1': '1-2',
  '14.2': '1-4',
  '14.3': '1-3',
  '15.1': '1-3',
  '15.2': '1-3',
  '15.3': '1-7',
  '16.1': '1',
  '16.2': '1-5',
  '16.3': '1-4',
  '16.4': '1-3',
  '16.5': '1-3',
  '17.1': '1',
  '17.2': '1-4',
  '17.3': '1-2',
}

const expected = Object.entries(REQUIREMENTS).flatMap(([section, numbers]) =>
  numbers.split(' ').flatMap(range => {
    const [first = 0, last = first] = range.split('-').map(Number)
    return Array.from({ length: last - first + 1 }, (_, i) => `${section}.${first + i}`)
  }),
)

/** The rows of the page, except those of its list of what is open. */
const [, open = '', ...sections] = readFileSync(
  join(import.meta.dirname, '../docs/contributing/asvs.md'),
  'utf8',
).split(/^## /m)
const readRows = (text: string) =>
  [...text.matchAll(/^\| ([\d., ]+) \| ([^|]+) \|(?: ([^|]*)\|)?/gm)].map(
    ([, ids = '', how = '', tests = '']) => ({
      ids: ids.split(', ').map(id => id.trim()),
      how: how.trim(),
      tests: [...tests.matchAll(/`([^`]+)`/g)].map(([, file = '']) => file),
    }),
  )
const rows = sections.flatMap(readRows)

/** The requirements that a number stands for: itself, or all of a section or a chapter. */
const expand = (id: string) => expected.filter(one => one === id || one.startsWith(`${id}.`))

test('each requirement of levels 1 and 2 is named once', () => {
  const named = rows.flatMap(({ ids }) => ids.flatMap(expand))
  expect(named.toSorted()).toEqual(expected.toSorted())
})

test('each test that is named exists', () => {
  const missing = rows
    .flatMap(({ tests }) => tests)
    .filter(file => !existsSync(join(import.meta.dirname, file)))
  expect([...new Set(missing)]).toEqual([])
})

test('a requirement that is open is on the list of these, with what is missing', () => {
  const isOpen = rows.filter(({ how }) => how === 'open').flatMap(({ ids }) => ids)
  expect(readRows(open).flatMap(({ ids }) => ids)).toEqual(isOpen)
})
