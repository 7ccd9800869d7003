import { describe, expect, test } from 'vitest'
import { mergePlans } from '../../src/accounts/plan.ts'
import { DAY } from '../../src/platform/clock.ts'
import { createTestDashboard } from '../support/dashboard.ts'
import { byLocalPart } from '../support/list-service.ts'
import { users } from '../support/recipients.ts'

type Options = NonNullable<Parameters<typeof createTestDashboard>[0]>

/** A dashboard that verifies addresses whose replies depend on their local part. */
const createVerifier = (options: Options = {}) =>
  createTestDashboard({ ...options, engine: { script: byLocalPart } })

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
    const { verify, clock, signIn, get } = await createVerifier()
    await verify(['gone@a.test', 'gone2@a.test'])
    await clock.advance(DAY)
    await verify(['nobody@a.test'])
    await clock.advance(6 * DAY)
    await verify(['user1@a.test', 'user2@a.test', 'user3@a.test', 'risky@a.test'])
    await signIn()
    const { text } = await get('/usage')
    const words = textOf(text)
    expect(words).toContain('Verifications 5 0 from cache · 5 credits')
    expect(words).toContain('Deliverable 3 60.0%')
    expect(text.match(/<th scope="row">2026-\d\d-\d\d</g)).toHaveLength(7)
    expect(dayOf(text, '2026-06-08')).toEqual(['3', '1', '0', '0', '4', '4'])
    expect(dayOf(text, '2026-06-02')).toEqual(['0', '0', '1', '0', '1', '1'])
    const month = await get('/usage?period=month')
    expect(dayOf(month.text, '2026-06-01')).toEqual(['0', '0', '2', '0', '2', '2'])
    expect(month.text).toMatch(/period=month#statistics"\s+aria-current="page"/)
  })

  test('has a chart for several days, none for one day', async () => {
    const dashboard = await createVerifier()
    await dashboard.verify(['user1@a.test'])
    const week = await dashboard.get('/usage')
    expect(week.text).toMatch(/src="\/assets\/\w+\/chart.js"/)
    expect(week.text).toContain('data-chart="days"')
    expect(week.text).toContain('<table id="days">')
    const day = await dashboard.get('/usage?period=day')
    expect(day.text).not.toContain('chart.js')
    expect(dayOf(day.text, '2026-06-01')).toEqual(['1', '0', '0', '0', '1', '1'])
  })

  test('is shown by key, busiest first, including revoked keys', async () => {
    const { verify, addKey, request, get } = await createVerifier()
    await verify(['user1@a.test'])
    await verify(users(2), await addKey({ name: '<b>CI</b>' }))
    const gone = await addKey({ id: 'key_gone', name: 'gone' })
    await verify(users(3, 'b.test'), gone)
    await request('/v1/keys/key_gone', { method: 'DELETE' })
    const { text } = await get('/usage')
    const card = /by key<\/h2>(.*?)<\/section>/s.exec(text)?.[1] ?? ''
    const labels = [...card.matchAll(/<th scope="row">(.*?)<\/th>/gs)].map(([, label]) => label)
    expect(labels).toEqual(['key_gone (revoked)', '&lt;b&gt;CI&lt;/b&gt;', 'test'])
  })

  test('shows used, reserved and remaining credits, when they reset, and what costs one', async () => {
    const plans = mergePlans({ free: { creditsPerDay: 20 } })
    const { verify, submit, get } = await createVerifier({ plan: 'free', settings: { plans } })
    await verify(users(5))
    await submit(users(13, 'b.test'))
    const { text } = await get('/usage')
    const words = textOf(text)
    expect(words).toContain('Used 5 Reserved for lists 13 Left 2')
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
    const dashboard = await createVerifier()
    await dashboard.verify(['risky@a.test'])
    await dashboard.signIn(await dashboard.addKey({ scopes: ['dashboard'] }))
    const { status, text } = await dashboard.get('/usage')
    expect(status).toBe(403)
    expect(text).toContain('account:read')
    expect(text).not.toContain('risky@a.test')
  })

  test('of an unknown period defaults to a week', async () => {
    const { status, text } = await (await createTestDashboard()).get('/usage?period=%3Cimg%3E')
    expect(status).toBe(200)
    expect(text).toMatch(/period=week#statistics"\s+aria-current="page"/)
  })
})
