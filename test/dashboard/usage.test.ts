import { describe, expect, test } from 'vitest'
import { reserveCredits, settleCredits } from '../../src/accounts/credits/credit-store.ts'
import { addUsage } from '../../src/accounts/credits/usage.ts'
import { periodStart } from '../../src/accounts/plan.ts'
import { write } from '../../src/db/database.ts'
import { DAY } from '../../src/platform/clock.ts'
import { createTestDashboard } from '../support/dashboard.ts'

type Options = Parameters<typeof createTestDashboard>[0]

/** A dashboard whose account verified `count` addresses some days ago. */
async function used(
  uses: readonly {
    kind: string
    count: number
    daysAgo?: number
    keyId?: string
    credits?: number
  }[],
  options: Options = {},
) {
  const dashboard = await createTestDashboard(options)
  const today = periodStart(dashboard.clock.now())
  await write(dashboard.database, trx =>
    addUsage(
      trx,
      uses.map(({ kind, count, daysAgo = 0, keyId = 'key_1', credits = 0 }) => ({
        account_id: 'acc_1',
        key_id: keyId,
        day: today - daysAgo * DAY,
        class: kind,
        verifications: count,
        cached: 0,
        credits,
      })),
    ),
  )
  return dashboard
}

/** Returns the text of a page. */
const textOf = (page: string) =>
  page
    .replaceAll(/<[^>]+>/g, ' ')
    .replaceAll(/\s+/g, ' ')
    .replaceAll(' .', '.')

/** Returns the cells of a day in the table. */
const dayOf = (page: string, date: string) =>
  [
    ...(new RegExp(`<th scope="row">${date}</th>(.*?)</tr>`, 's').exec(page)?.[1] ?? '').matchAll(
      /<td class="number">([^<]*)/g,
    ),
  ].map(([, value]) => value)

describe('usage', () => {
  test('explains what will be counted while there are no verifications', async () => {
    const { text, status } = await (await createTestDashboard()).get('/usage')
    expect(status).toBe(200)
    expect(text).toContain('No verifications in this period')
    expect(text).toContain('curl https://ev.test/v1/verify/single')
    expect(text).toContain('No verifications yet.')
  })

  test('has the totals of the period, and a table of its days by class', async () => {
    const dashboard = await used([
      { kind: 'deliverable', count: 1_500, credits: 1_500 },
      { kind: 'risky', count: 500, credits: 500 },
      { kind: 'undeliverable', count: 7, daysAgo: 6 },
      { kind: 'unknown', count: 9, daysAgo: 7 },
    ])
    const { text } = await dashboard.get('/usage')
    const words = textOf(text)
    expect(words).toContain('Verifications 2,007 0 from cache · 2,000 credits')
    expect(words).toContain('Deliverable 1,500 74.7%')
    expect(text.match(/<th scope="row">2026-\d\d-\d\d</g)).toHaveLength(7)
    expect(dayOf(text, '2026-06-01')).toEqual(['1,500', '500', '0', '0', '2,000', '2,000'])
    expect(dayOf(text, '2026-05-26')).toEqual(['0', '0', '7', '0', '7', '0'])
    const month = await dashboard.get('/usage?period=month')
    expect(dayOf(month.text, '2026-05-25')).toEqual(['0', '0', '0', '9', '9', '0'])
    expect(month.text).toMatch(/period=month#statistics"\s+aria-current="page"/)
  })

  test('has a chart for several days, none for one day', async () => {
    const dashboard = await used([{ kind: 'deliverable', count: 1 }])
    const week = await dashboard.get('/usage')
    expect(week.text).toMatch(/src="\/assets\/\w+\/chart.js"/)
    expect(week.text).toContain('data-chart="days"')
    expect(week.text).toContain('<table id="days">')
    const day = await dashboard.get('/usage?period=day')
    expect(day.text).not.toContain('chart.js')
    expect(dayOf(day.text, '2026-06-01')).toEqual(['1', '0', '0', '0', '1', '0'])
  })

  test('is shown by key, busiest first, including revoked keys', async () => {
    const dashboard = await used([
      { kind: 'deliverable', count: 2 },
      { kind: 'risky', count: 5, keyId: 'key_2' },
      { kind: 'risky', count: 9, keyId: 'key_gone' },
    ])
    await dashboard.addKey({ name: '<b>CI</b>' })
    const { text } = await dashboard.get('/usage')
    const card = /by key<\/h2>(.*?)<\/section>/s.exec(text)?.[1] ?? ''
    const labels = [...card.matchAll(/<th scope="row">(.*?)<\/th>/gs)].map(([, label]) => label)
    expect(labels).toEqual(['key_gone (revoked)', '&lt;b&gt;CI&lt;/b&gt;', 'test'])
  })

  test('shows used, reserved and remaining credits, when they reset, and what costs one', async () => {
    const dashboard = await used([], { plan: 'free' })
    const account = { accountId: 'acc_1', period: periodStart(dashboard.clock.now()) }
    await write(dashboard.database, async trx => {
      await reserveCredits(trx, { ...account, amount: 90, limit: 100 })
      await settleCredits(trx, { ...account, released: 5, used: 5 })
    })
    const { text } = await dashboard.get('/usage')
    const words = textOf(text)
    expect(words).toContain('Used 5 Reserved for lists 85 Left 10')
    expect(words).toContain('90.0% used: limit almost reached')
    expect(words).toContain('Resets 2026-06-02 00:00 UTC.')
    expect(words).toContain('Unknown results, cached results')
  })

  test('shows that a plan is unlimited', async () => {
    const { text } = await (await createTestDashboard()).get('/usage')
    expect(textOf(text)).toContain('Left Unlimited The Enterprise plan has unlimited credits.')
  })

  test('shows all limits and their use', async () => {
    const dashboard = await createTestDashboard({ plan: 'free' })
    const { text } = await dashboard.get('/usage')
    const words = textOf(text)
    expect(words).toMatch(/Single verifications [^%]*0% used 100 of 100 per 1 min left\./)
    expect(words).toMatch(/\d+ of 600 per 1 min left\. Resets 2026-06-01 12:01 UTC\./)
    expect(words).toContain('Unfinished lists of your account 0% used 10 of 10 left.')
    expect(words).toContain('Stored rows of your account 0% used 100,000 of 100,000 left.')
  })

  test('shows that limits are turned off', async () => {
    const dashboard = await createTestDashboard({ settings: { limits: false } })
    expect((await dashboard.get('/usage')).text).toContain(
      'The administrator has turned off rate limits.',
    )
  })

  test('is closed to a key without the scope', async () => {
    const dashboard = await used([{ kind: 'risky', count: 1_234 }])
    await dashboard.signIn(await dashboard.addKey({ scopes: ['dashboard'] }))
    const { status, text } = await dashboard.get('/usage')
    expect(status).toBe(403)
    expect(text).toContain('account:read')
    expect(text).not.toContain('1,234')
  })

  test('of an unknown period defaults to a week', async () => {
    const { status, text } = await (await createTestDashboard()).get('/usage?period=%3Cimg%3E')
    expect(status).toBe(200)
    expect(text).toMatch(/period=week#statistics"\s+aria-current="page"/)
  })
})
