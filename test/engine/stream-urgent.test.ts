import { expect, test } from 'vitest'
import { createTestEngine, mail, reasonsOf } from '../support/engine.ts'
import { toRecipients } from '../support/recipients.ts'
import { drainEventLoop } from '../support/wait.ts'

test('an urgent stream uses no connection slot of lists; another stream waits', async () => {
  const { engine, settled, many } = createTestEngine({
    // The list holds the only slot: its server never answers.
    script: toRecipients(to => {
      if (to.endsWith('@slow.test')) return null
      return /^(ann|bob)@/.test(to) ? '250 2.1.5 Ok' : '550 5.1.1 No such user'
    }),
    zone: mail('slow.test', '192.0.2.9'),
    engine: { concurrency: 1 },
  })
  const leaving = new AbortController()
  const list = engine.verifyMany(['ann@slow.test'], { signal: leaving.signal })
  const first = list[Symbol.asyncIterator]()
    .next()
    .catch(() => {})
  await drainEventLoop()
  const urgent = await many(['ann@a.test'], { wait: false, urgent: true })
  expect(reasonsOf(urgent)).toEqual(['ann@a.test accepted_email'])
  let isThere = false
  const patient = engine.verifyMany(['bob@a.test'], { wait: false })[Symbol.asyncIterator]().next()
  void patient.then(() => {
    isThere = true
  })
  await drainEventLoop()
  expect(isThere).toBe(false)
  leaving.abort()
  await settled(first)
  expect((await settled(patient)).value.verdict.reason).toBe('accepted_email')
})
