import { expect, test } from 'vitest'
import { createTestJob } from '../../support/job.ts'
import { recipientOf } from '../../support/recipients.ts'

/** A server that defers each recipient once, then says `reply`; undefined accepts it. */
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

test('a greylisting server that accepts every name is found to be a catch-all', async () => {
  const job = await createTestJob({ texts: TEXTS, script: greylist(() => undefined) })
  await job.work()
  expect(await job.reasons()).toEqual(TEXTS.map(() => 'catch_all'))
})

test('a greylisting server that knows its recipients is not one', async () => {
  const job = await createTestJob({
    texts: TEXTS,
    script: greylist(to => (TEXTS.includes(to) ? undefined : '550 5.1.1 No such user')),
  })
  await job.work()
  expect(await job.reasons()).toEqual(TEXTS.map(() => 'accepted_email'))
})

test('where the random recipient is never decided, no address is called deliverable', async () => {
  const job = await createTestJob({
    texts: TEXTS,
    script: greylist(to => (TEXTS.includes(to) ? undefined : '450 4.2.0 Greylisted')),
  })
  await job.work()
  expect(await job.reasons()).toEqual(TEXTS.map(() => 'low_deliverability'))
})
