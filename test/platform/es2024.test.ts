import { expect, test } from 'vitest'
import { groupBy, withResolvers } from '../../src/platform/es2024.ts'

test('withResolvers returns a promise that its functions settle', async () => {
  const accepted = withResolvers<number>()
  accepted.resolve(1)
  accepted.resolve(2)
  expect(await accepted.promise).toBe(1)
  const rejected = withResolvers<number>()
  rejected.reject('closed')
  await expect(rejected.promise).rejects.toBe('closed')
})

test('groupBy keeps the order of the keys and of the items', () => {
  const words = ['anna', 'ben', 'bo', 'ada', 'carl']
  const byLength = (word: string) => word.length
  expect([...groupBy(words, byLength)]).toEqual([
    [4, ['anna', 'carl']],
    [3, ['ben', 'ada']],
    [2, ['bo']],
  ])
  expect(groupBy(words, byLength)).toEqual(Map.groupBy(words, byLength))
  expect(groupBy([], byLength).size).toBe(0)
})
