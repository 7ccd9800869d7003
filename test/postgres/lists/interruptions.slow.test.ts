import { setTimeout } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../../src/platform/clock.ts'
import { clientOf, prepareMembers, readReasons, untilFinished } from '../../lists/doors.ts'
import type { ListMail } from '../../lists/list-mail.ts'
import { LISTS_AT_ONE_OPERATOR, MIXED_LIST } from '../../lists/scenarios.ts'
import { type CutProxy, cutProxy } from '../../support/cut-proxy.ts'
import { waitUntil } from '../../support/wait.ts'

const { texts, reasons } = MIXED_LIST
/** Recipients after which a list is interrupted, of 80. */
const ASKED_BEFORE = 25
/** The addresses that two members ask about at once: two connections with five at four operators. */
const IN_FLIGHT_MAX = 2 * 5 * 4

const countAsked = (mail: ListMail) => mail.asked().size

/** Number of questions beyond one about each address, or two where the server greylists. */
const countRepeated = (mail: ListMail) =>
  [...mail.asked()].reduce(
    (sum, [to, times]) => sum + Math.max(0, times - (to.endsWith('@grey.test') ? 2 : 1)),
    0,
  )

test('the list of a member that stops is finished by the other, and nothing is asked again', async () => {
  const { mail, join } = await prepareMembers(MIXED_LIST)
  const [first, other] = [await join(), await join()]
  const { job_id } = await clientOf(first).batch([...texts])
  await waitUntil(() => countAsked(mail) >= ASKED_BEFORE)
  await first.close()
  expect(countAsked(mail)).toBeLessThan(texts.length - 2)
  await untilFinished(other, systemClock, job_id)
  expect(await readReasons(other, job_id)).toEqual(reasons)
  expect(countRepeated(mail)).toBe(0)
})

test('a list that another member cancels asks for nothing more, and keeps its results', async () => {
  const { mail, join } = await prepareMembers(MIXED_LIST)
  const [first, other] = [await join(), await join()]
  const { job_id } = await clientOf(first).batch([...texts])
  await waitUntil(() => countAsked(mail) >= ASKED_BEFORE)
  await clientOf(other).jobs.cancel(job_id)
  await waitUntil(() => mail.open() === 0)
  const asked = countAsked(mail)
  expect(asked).toBeLessThan(texts.length - 2)
  const found = await readReasons(first, job_id)
  expect(found.filter(reason => reason !== null).length).toBeGreaterThan(0)
  expect(found.filter((reason, row) => reason !== null && reason !== reasons[row])).toEqual([])
  // Nothing that was planned before the cancellation follows, such as greylisted addresses.
  await Promise.all([first.close(), other.close()])
  expect(countAsked(mail)).toBe(asked)
})

test('lists of two members at one operator share its connections, and a short one does not wait', async () => {
  const { long, short, request } = LISTS_AT_ONE_OPERATOR
  const { mail, join } = await prepareMembers(request)
  const [one, other] = [await join(), await join()]
  // At the same time: on a busy machine, a later list would find the long one nearly done.
  const [first, second] = await Promise.all([
    clientOf(one).batch([...long.texts]),
    clientOf(other).batch([...short.texts]),
  ])
  for (const { job_id } of [first, second]) await untilFinished(one, systemClock, job_id)
  expect(await readReasons(other, first.job_id)).toEqual(long.reasons)
  expect(await readReasons(one, second.job_id)).toEqual(short.reasons)
  const lastOf = ({ texts }: { readonly texts: readonly string[] }) =>
    mail.recipients().findLastIndex(to => texts.includes(to))
  expect(lastOf(short)).toBeLessThan(lastOf(long))
  expect(mail.peak('192.0.2.1')).toBeLessThanOrEqual(2)
  expect([...mail.asked().values()].every(times => times === 1)).toBe(true)
})

describe('each row has one result although the connection to PostgreSQL', () => {
  const TROUBLES: readonly (readonly [name: string, trouble: (proxy: CutProxy) => unknown])[] = [
    ['is reset', proxy => proxy.reset()],
    ['is lost after a commit', proxy => proxy.cutAfterCommit()],
    ['is lost before a commit', proxy => proxy.cutBeforeCommit()],
    [
      'is refused for a while',
      async proxy => {
        proxy.refuse()
        await setTimeout(200)
        proxy.accept()
      },
    ],
  ]

  test.each(TROUBLES)('%s', async (_, trouble) => {
    const { mail, databaseUrl, join } = await prepareMembers(MIXED_LIST)
    const proxy = await cutProxy(databaseUrl)
    onTestFinished(() => proxy.close())
    const direct = await join()
    const cut = await join(proxy.url)
    const { job_id } = await clientOf(direct).batch([...texts])
    for (const asked of [5, 20, 40]) {
      await waitUntil(() => countAsked(mail) >= asked)
      await trouble(proxy)
    }
    await untilFinished(direct, systemClock, job_id)
    expect(await readReasons(direct, job_id)).toEqual(reasons)
    const job = await clientOf(direct).jobs.get(job_id)
    expect(job.processed_emails).toBe(texts.length)
    expect(countRepeated(mail)).toBeLessThanOrEqual(3 * IN_FLIGHT_MAX)
    await Promise.all([cut.close(), direct.close()])
  })
})
