import { expect, test } from 'vitest'
import { createTestJob } from '../../support/job.ts'
import { recipientOf } from '../../support/recipients.ts'

/** A server that defers each recipient once and then sends `reply`; undefined accepts it. */
function greylist(reply: (recipient: string) => string | undefined) {
  const seen = new Set<string>()
  return (line: string) => {
    if (!line.startsWith('RCPT')) return undefined
    const to = recipientOf(line)
    if (seen.has(to)) return reply(to)
    seen.add(to)
    return '450 4.2.0 Greylisted, please try again'
  }
}

const TEXTS = Array.from({ length: 12 }, (_, n) => `made-up${n}@a.test`)

test('detects a greylisting server that accepts every name as a catch-all', async () => {
  const job = await createTestJob({ texts: TEXTS, script: greylist(() => undefined) })
  await job.work()
  expect(await job.reasons()).toEqual(TEXTS.map(() => 'catch_all'))
})

test('does not detect a greylisting server that knows its recipients as a catch-all', async () => {
  const job = await createTestJob({
    texts: TEXTS,
    script: greylist(to => (TEXTS.includes(to) ? undefined : '550 5.1.1 No such user')),
  })
  await job.work()
  expect(await job.reasons()).toEqual(TEXTS.map(() => 'accepted_email'))
})

test('reports no address as deliverable if the random recipient is never decided', async () => {
  const job = await createTestJob({
    texts: TEXTS,
    script: greylist(to => (TEXTS.includes(to) ? undefined : '450 4.2.0 Greylisted')),
  })
  await job.work()
  expect(await job.reasons()).toEqual(TEXTS.map(() => 'low_deliverability'))
})
