import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openLists } from '../../src/engine/lists.ts'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ev-lists-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const operators = (name: string, ...hosts: string[]) => ({
  [name]: { hosts, title: null, truth: null },
})

test('operators are replaced on reload together with the lists, or stay with them', () => {
  const blocked = join(folder, 'blocked.txt')
  writeFileSync(blocked, '')
  const sources = { files: { blocked }, entries: {}, operators: operators('acme', 'acme.test') }
  const lists = openLists(sources)
  const name = () => lists.operators.of('mx.acme.test').name
  expect(name()).toBe('acme')
  expect(() => lists.reload({ ...sources, operators: operators('gogle') })).toThrow(
    /Did you mean "google"/,
  )
  writeFileSync(blocked, 'foo bar\n')
  const fresh = { ...sources, operators: operators('apex', 'acme.test') }
  expect(() => lists.reload(fresh)).toThrow(/blocked\.txt has "foo bar" on line 1/)
  expect(name()).toBe('acme')
  writeFileSync(blocked, '')
  lists.reload(fresh)
  expect(name()).toBe('apex')
  // Later reloads use these sources.
  lists.reload()
  expect(name()).toBe('apex')
})
