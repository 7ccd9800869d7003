import { expect, test } from 'vitest'
import { findPeerBlocks } from '../../../src/dashboard/health/create-health.ts'
import type { EgressPool } from '../../../src/engine/probe/egress-pool.ts'
import { processes, REFUSAL, storedOf } from '../../support/cluster-rate-state.ts'
import { waitUntil } from '../../support/wait.ts'

test('lists blocks of egresses of other processes with the reply, until a connection succeeds', async () => {
  const [one, worker] = await processes(2)
  const seenBy = (...names: string[]) => {
    const egressPool = { names } as Pick<EgressPool, 'names'> as EgressPool
    return findPeerBlocks(one.database, { egressPool, titleOf: operator => `Mail of ${operator}` })
  }
  const pace = worker.pace('mx.test', {}, 'oslo')
  pace.refused(REFUSAL)
  await waitUntil(async () => (await storedOf(one, 'mx.test', 'oslo'))?.state.refusal != null)
  const [block, ...more] = await seenBy('default')
  expect(more).toEqual([])
  expect(block).toMatchObject({ title: 'Mail of mx.test', egress: 'oslo', answer: REFUSAL })
  expect((block?.until ?? 0) - (block?.since ?? 0)).toBe(30 * 60_000)
  // A block of its own egress is shown with its operators instead.
  expect(await seenBy('default', 'oslo')).toEqual([])
  pace.succeeded()
  await waitUntil(async () => (await seenBy('default')).length === 0)
})
