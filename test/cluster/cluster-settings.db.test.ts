import { expect, test } from 'vitest'
import {
  ensureSetting,
  getSetting,
  replaceSecretMark,
  setIfAbsent,
} from '../../src/cluster/cluster-settings.ts'
import { tempDatabase } from '../support/database.ts'

test('the first value is the one in effect', async () => {
  const database = await tempDatabase()
  expect(await getSetting(database, 'base-url')).toBeNull()
  expect(await setIfAbsent(database, 'base-url', 'https://a.example')).toBe('https://a.example')
  expect(await setIfAbsent(database, 'base-url', 'https://b.example')).toBe('https://a.example')
  expect(await getSetting(database, 'base-url')).toBe('https://a.example')
  expect(await getSetting(database, 'secret-mark')).toBeNull()
})

test('concurrent callers all get the same value', async () => {
  const database = await tempDatabase()
  const values = Array.from({ length: 8 }, (_, n) => `https://${n}.example`)
  const stored = await Promise.all(values.map(value => setIfAbsent(database, 'base-url', value)))
  expect(new Set(stored).size).toBe(1)
  expect(stored[0]).toBe(await getSetting(database, 'base-url'))
})

test('a value can be replaced', async () => {
  const database = await tempDatabase()
  await ensureSetting(database, 'base-url', 'https://a.example')
  await ensureSetting(database, 'base-url', 'https://b.example')
  expect(await getSetting(database, 'base-url')).toBe('https://b.example')
})

test('one of several concurrent replacements of the secret succeeds, with its time', async () => {
  const database = await tempDatabase()
  await setIfAbsent(database, 'secret-mark', 'old')
  await ensureSetting(database, 'secret-begun-at', '0')
  const replaced = await Promise.all(
    ['a', 'b', 'c'].map((to, n) =>
      replaceSecretMark(database, { from: 'old', to, begunAt: n + 1 }),
    ),
  )
  expect(replaced.filter(done => done)).toHaveLength(1)
  const nth = replaced.indexOf(true)
  expect(await getSetting(database, 'secret-mark')).toBe('abc'[nth])
  expect(await getSetting(database, 'secret-begun-at')).toBe(String(nth + 1))
})
