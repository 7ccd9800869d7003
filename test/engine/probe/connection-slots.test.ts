import { expect, test } from 'vitest'
import { Semaphore } from '../../../src/platform/semaphore.ts'
import { silentFrom, stay } from '../../support/mx.ts'
import { ask, createTestProber } from '../../support/prober.ts'
import { drainEventLoop } from '../../support/wait.ts'

test('a connection of a list holds its slot until QUIT is done', async () => {
  let farewells = 0
  const home = createTestProber(
    (line, session) => {
      if (line !== 'QUIT') return undefined
      farewells++
      return stay(session)
    },
    { world: { connectionSlots: new Semaphore(1) } },
  )
  const first = home.begin([ask('ann@a.test')])
  await drainEventLoop()
  expect(first.answered).toBe(true)
  const second = home.begin([ask('ben@b.test')])
  await drainEventLoop()
  expect(farewells).toBe(1)
  expect(home.mx.sessions).toHaveLength(1)
  await first.end()
  await second.end()
  expect(home.mx.sessions).toHaveLength(2)
})

test('a single verification does not wait for lists', async () => {
  const home = createTestProber(silentFrom('RCPT'), {
    world: { connectionSlots: new Semaphore(1) },
  })
  home.begin([ask('ann@a.test')])
  await drainEventLoop()
  home.begin([ask('ben@b.test')], { single: true })
  await drainEventLoop()
  expect(home.mx.sessions).toHaveLength(2)
})
