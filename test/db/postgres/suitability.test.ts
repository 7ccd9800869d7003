import { expect, test } from 'vitest'
import { sharesProcess } from '../../../src/db/postgres/suitability.ts'

/** A connection whose statements run in these server processes, one after another. */
const connection = (...ids: readonly number[]) => {
  const left = ids.values()
  return async () => ({ rows: [{ id: left.next().value as number }] })
}

test.each([
  ['of their own', connection(1, 1, 1), connection(2, 2, 2), false],
  ['of an idle pooler', connection(1, 1, 1), connection(1, 1, 1), true],
  ['of a pooler with other clients', connection(1, 1, 1), connection(2, 3, 2), true],
  ['of a pooler that exchanges them', connection(1, 3, 1), connection(2, 2, 2), true],
])('connections use server processes %s', async (_, one, other, isShared) => {
  expect(await sharesProcess(one, other)).toBe(isShared)
})
