import { describe, expect, test } from 'vitest'
import { mergePlans } from '../../src/accounts/plan.ts'
import { mail, toRecipients } from '../support/engine.ts'
import { createTestService } from '../support/service.ts'

// Feedback from the request that reports it to the verdicts and reports that use it, on both
// databases.

const DAY = 86_400_000

type Item = { readonly email: string; readonly kind: string; readonly [field: string]: unknown }

const BOUNCE = { kind: 'bounced', code: 550, enhanced_code: '5.1.1', text: 'unknown' } as const

/** A service whose mail server accepts all mailboxes of a.test that begin with "ann", and all of all.test. */
async function createService(options: Parameters<typeof createTestService>[0] = {}) {
  const service = await createTestService({
    ...options,
    engine: {
      zone: mail('all.test', '192.0.2.5'),
      script: toRecipients(to =>
        /^ann|@all\.test$/.test(to) ? '250 Ok' : '550 5.1.1 No such user',
      ),
    },
  })
  const { json, clock, request } = service
  const at = (daysAgo: number) => new Date(clock.now() - daysAgo * DAY).toISOString()
  const send = (items: readonly Item[], key?: string) =>
    request('/v1/feedback', { body: { items }, ...(key && { key }) })
  const report = async (items: readonly Item[], key?: string) => {
    const response = await send(items, key)
    return ((await response.json()) as { data: object }).data
  }
  const bounce = (email: string, daysAgo = 1): Item => ({
    ...BOUNCE,
    email,
    occurred_at: at(daysAgo),
  })
  const delivery = (email: string, daysAgo = 1): Item => ({
    email,
    kind: 'delivered',
    occurred_at: at(daysAgo),
  })
  const verify = (email: string, key?: string) =>
    json('/v1/verify/single?include=evidence', {
      body: { email, force_refresh: true },
      ...(key && { key }),
    })
  const reasonOf = async (email: string) => (await verify(email)).reason
  /** Verdicts that were compared with an outcome, and the share of them that were right. */
  const compared = async () => {
    const { total } = (await json('/v1/feedback/report')).data as {
      total: { count: number; observed: number }
    }
    return [total.count, total.observed]
  }
  /** Enrolls the account, so that its verdicts are stored for later feedback. */
  const enroll = () => report([delivery('other@b.test', 3)])
  return { ...service, send, report, bounce, delivery, verify, reasonOf, compared, enroll }
}

describe('a piece of feedback', () => {
  test('is recorded once, in one request and in several, and an invalid one is rejected', async () => {
    const { report, bounce } = await createService()
    const [ann, bob] = [bounce('ann@example.com'), bounce('bob@example.com')]
    expect(await report([ann, ann, bob, bounce('no address')])).toEqual({
      received: 4,
      recorded: 2,
      duplicates: 1,
      rejected: [{ index: 3, error: expect.stringContaining('invalid') }],
    })
    expect(await report([ann, bob])).toMatchObject({ recorded: 0, duplicates: 2 })
  })

  test('that is the newest about its address decides, in any order of arrival', async () => {
    const { report, bounce, delivery, reasonOf, clock, enroll } = await createService()
    await enroll()
    expect(await reasonOf('ann@a.test')).toBe('accepted_email')
    await clock.advance(3 * DAY)
    await report([bounce('ann@a.test', 1)])
    expect(await reasonOf('ann@a.test')).toBe('rejected_email')
    await report([delivery('ann@a.test', 2)])
    expect(await reasonOf('ann@a.test')).toBe('rejected_email')
    await report([delivery('ann@a.test', 0)])
    expect(await reasonOf('ann@a.test')).toBe('accepted_email')
  })

  test('about a full mailbox is recorded, but decides nothing', async () => {
    const { report, reasonOf } = await createService()
    const full = { kind: 'bounced', code: 552, enhanced_code: '5.2.2', text: 'Mailbox full' }
    expect(await report([{ ...full, email: 'ann@a.test' }])).toMatchObject({ recorded: 1 })
    expect(await reasonOf('ann@a.test')).toBe('accepted_email')
  })

  test('of another account changes nothing, however often it is repeated', async () => {
    const service = await createService()
    const { report, delivery, bounce, verify, addAccount, addKey, enroll, clock } = service
    await enroll()
    await addAccount('acc_2')
    const key = await addKey({ accountId: 'acc_2', id: 'key_2' })
    await report([delivery('other@b.test')], key)
    const before = await verify('ann@a.test')
    expect(await verify('ann@a.test', key)).toMatchObject({ reason: 'accepted_email' })
    await clock.advance(DAY)
    const bounces = Array.from({ length: 30 }, (_, n) => bounce(`ann${n}@a.test`, 0))
    await report([...bounces, bounce('ann@a.test', 0)], key)
    const { reason, confidence, risk_level } = await verify('ann@a.test')
    expect(before).toMatchObject({ reason, confidence, risk_level })
    expect((await verify('ann@a.test', key)).reason).toBe('rejected_email')
  })
})

describe('a verdict', () => {
  test('is compared with its last outcome', async () => {
    const { report, bounce, delivery, verify, compared, clock, enroll } = await createService()
    await enroll()
    await verify('ann@a.test')
    await clock.advance(3 * DAY)
    expect(await compared()).toEqual([0, 0])
    await report([delivery('ann@a.test', 2)])
    expect(await compared()).toEqual([1, 1])
    await report([delivery('ann@a.test', 1.5)])
    expect(await compared()).toEqual([1, 1])
    await report([bounce('ann@a.test', 1)])
    expect(await compared()).toEqual([1, 0])
  })

  test('is not compared with feedback from before it, or of more than a month later', async () => {
    const { report, bounce, verify, compared, clock, enroll } = await createService()
    await enroll()
    await verify('ann1@a.test')
    await report([bounce('ann1@a.test', 1)])
    await verify('ann2@a.test')
    await clock.advance(31 * DAY)
    await report([bounce('ann2@a.test', 0)])
    expect(await compared()).toEqual([0, 0])
  })

  test('that feedback decided is not compared with the next one', async () => {
    const { report, bounce, delivery, verify, compared, clock } = await createService()
    await report([bounce('bob@all.test', 1)])
    expect((await verify('zoe@all.test')).reason).toBe('catch_all')
    expect((await verify('bob@all.test')).reason).toBe('rejected_email')
    await clock.advance(DAY)
    await report([delivery('bob@all.test', 0)])
    expect(await compared()).toEqual([0, 0])
  })

  test('has less confidence once half of those before were wrong', async () => {
    const { report, bounce, delivery, verify, compared, clock, enroll } = await createService()
    await enroll()
    const emails = Array.from({ length: 20 }, (_, n) => `ann${n}@a.test`)
    for (const email of emails) await verify(email)
    const { confidence: before } = await verify('ann@a.test')
    await clock.advance(DAY)
    await report(emails.map((email, n) => (n < 10 ? delivery(email, 0) : bounce(email, 0))))
    expect(await compared()).toEqual([20, 0.5])
    const { confidence, evidence } = await verify('ann@a.test')
    expect(confidence).toBeLessThan(Math.min(80, Number(before)))
    expect(evidence).toMatchObject({
      calibration: { fixed_confidence: 95, operator: { correct: 10, total: 20 } },
    })
  })
})

describe('the limit of stored feedback', () => {
  const addresses = (count: number, prefix = 'user') =>
    Array.from({ length: count }, (_, n) => `${prefix}${n}@example.com`)

  const createLimited = (storedFeedback: number) => {
    const plans = mergePlans({ free: { storedFeedback } })
    return createService({ plan: 'free', settings: { plans, limits: false } })
  }

  test('is exact for each account, counts no piece twice and no invalid one', async () => {
    const { send, report, bounce, addAccount, addKey } = await createLimited(3)
    const of = (emails: readonly string[]) => emails.map(email => bounce(email))
    expect((await send(of(addresses(4)))).status).toBe(429)
    const broken = of(addresses(9).map(address => address.replace('@', ' ')))
    const repeated = of([...addresses(2), ...addresses(2)])
    expect(await report([...broken, ...repeated])).toMatchObject({ recorded: 2, duplicates: 2 })
    expect(await report([...repeated, bounce('last@example.com')])).toMatchObject({ recorded: 1 })
    expect(await report(repeated)).toMatchObject({ recorded: 0, duplicates: 4 })
    expect((await send([...repeated, bounce('more@example.com')])).status).toBe(429)
    await addAccount('acc_2', 'free')
    const key = await addKey({ accountId: 'acc_2', id: 'key_2' })
    expect(await report(of(addresses(3)), key)).toMatchObject({ recorded: 3 })
  })

  test('holds for a request of several transactions, which is refused as a whole', async () => {
    const { send, report, bounce } = await createLimited(999)
    const items = addresses(1_000).map(address => bounce(address))
    expect((await send(items)).status).toBe(429)
    expect(await report(items.slice(1))).toMatchObject({ recorded: 999, duplicates: 0 })
  })

  test('is exact for simultaneous requests', async () => {
    const { send, bounce } = await createLimited(3)
    const all = await Promise.all(addresses(8).map(address => send([bounce(address)])))
    expect(all.map(({ status }) => status).toSorted()).toEqual([
      ...Array(3).fill(200),
      ...Array(5).fill(429),
    ])
  })
})
