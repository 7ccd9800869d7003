import { expect, test } from 'vitest'
import { Semaphore } from '../../src/platform/semaphore.ts'
import { drainEventLoop } from '../support/wait.ts'

test('a slot is released once, even if its function is called twice', async () => {
  const semaphore = new Semaphore(1)
  const release = await semaphore.acquire()
  let taken = 0
  for (const _ of [1, 2]) void semaphore.acquire().then(() => taken++)
  await drainEventLoop()
  expect(taken).toBe(0)
  release()
  release()
  await drainEventLoop()
  expect(taken).toBe(1)
})
