import { describe, expect, test } from 'vitest'
import { updateAccount } from '../../src/accounts/account-store.ts'
import { reserveCredits } from '../../src/accounts/credits/credit-store.ts'
import { addUsage } from '../../src/accounts/credits/usage.ts'
import { periodStart } from '../../src/accounts/plan.ts'
import { write } from '../../src/db/database.ts'
import { cancelJob } from '../../src/jobs/job-state.ts'
import { DAY } from '../../src/platform/clock.ts'
import { createTestDashboard } from '../support/dashboard.ts'
import { MIXED, seedJob } from '../support/job-rows.ts'
import { endpoint } from './webhooks/endpoint.ts'

/** Returns the text of the main part of a page. */
const textOf = (page: string) =>
  page
    .slice(page.indexOf('<main'))
    .replaceAll(/<[^>]+>/g, ' ')
    .replaceAll(/\s+/g, ' ')

describe('the overview', () => {
  test('is where signing in leads, and leads a new user to the first verification, list and key', async () => {
    const dashboard = await createTestDashboard()
    expect((await dashboard.get('/')).headers.get('Location')).toBe('/overview')
    const { text } = await dashboard.get('/overview')
    for (const path of ['/verify', '/lists/new', '/keys/new']) {
      expect(text).toContain(`<a class="button" href="${path}">`)
    }
    expect(text).not.toContain('Verifications by day')
    expect(textOf(text)).toContain('No problems found')
  })

  test('has the figures of the period, the lists with their results, and the last activity', async () => {
    const dashboard = await createTestDashboard()
    await seedJob(dashboard.database, { name: '<b>March</b>', texts: MIXED, done: 2 })
    const day = periodStart(dashboard.clock.now())
    const use = { account_id: 'acc_1', key_id: 'key_1', day, cached: 0, credits: 1 }
    await write(dashboard.database, trx =>
      addUsage(trx, [
        { ...use, class: 'deliverable', verifications: 900 },
        { ...use, class: 'risky', verifications: 300 },
      ]),
    )
    const { text } = await dashboard.get('/overview')
    const words = textOf(text)
    expect(words).toContain('Verified 1,200 30 days')
    expect(words).toContain('Deliverable 75.0% 900 addresses')
    expect(words).toContain('Lists running 1 4 rows left')
    expect(words).toMatch(/&lt;b&gt;March&lt;\/b&gt; Running 33%/)
    expect(text).not.toContain('<b>March</b>')
    const week = textOf((await dashboard.get('/overview?period=week')).text)
    expect(week).toContain('Verified 1,200 7 days')
  })

  test('compares the figures with the previous period', async () => {
    const dashboard = await createTestDashboard()
    const today = periodStart(dashboard.clock.now())
    const use = { account_id: 'acc_1', key_id: 'key_1', cached: 0, credits: 1 }
    const add = (day: number, kind: string, verifications: number) =>
      write(dashboard.database, trx => addUsage(trx, [{ ...use, day, class: kind, verifications }]))
    // The overview of an account without any verification has no figures.
    await seedJob(dashboard.database, { texts: MIXED })
    const week = async () => textOf((await dashboard.get('/overview?period=week')).text)
    await add(today, 'deliverable', 900)
    await add(today, 'risky', 300)
    await add(today - 7 * DAY, 'deliverable', 700)
    await add(today - 7 * DAY, 'risky', 300)
    expect(await week()).toContain('Verified 1,200 +20.0% vs. previous 7 days')
    expect(await week()).toContain('Deliverable 75.0% +5 pt · 900 addresses')
    await add(today - 8 * DAY, 'deliverable', 1_000)
    expect(await week()).toContain('Verified 1,200 −40.0% vs. previous 7 days')
    expect(await week()).toContain('Deliverable 75.0% −10 pt · 900 addresses')
  })

  test('polls the lists while one is active', async () => {
    const dashboard = await createTestDashboard()
    await seedJob(dashboard.database, { texts: MIXED, done: 2 })
    const polling = 'hx-get="/overview/lists" hx-trigger="every 5s"'
    expect((await dashboard.get('/overview')).text).toContain(polling)
    expect((await dashboard.get('/overview/lists')).text).toContain(polling)
    await cancelJob(dashboard.database, 'job_a')
    expect((await dashboard.get('/overview/lists')).text).not.toContain(polling)
  })

  test('shows failing webhooks', async () => {
    const dashboard = await endpoint()
    await dashboard.happen()
    dashboard.receiver.answer(500)
    await dashboard.attempt()
    const { text } = await dashboard.get('/overview')
    expect(textOf(text)).toContain(
      'Webhook failing https://app.test/hook: since 2026-06-01 12:00 UTC View',
    )
    expect(text).toContain(`href="/webhooks/${dashboard.id}">View</a>`)
    expect(textOf(text)).not.toContain('No problems found')
  })

  test('shows credits that are almost used up', async () => {
    const dashboard = await createTestDashboard({ plan: 'free' })
    const period = periodStart(dashboard.clock.now())
    const account = { accountId: 'acc_1', period }
    const problem = /limit almost reached Resets 2026-06-02 00:00 UTC View/
    await write(dashboard.database, trx =>
      reserveCredits(trx, { ...account, amount: 79, limit: 100 }),
    )
    expect(textOf((await dashboard.get('/overview')).text)).not.toMatch(problem)
    await write(dashboard.database, trx =>
      reserveCredits(trx, { ...account, amount: 1, limit: 100 }),
    )
    expect(textOf((await dashboard.get('/overview')).text)).toMatch(problem)
  })

  test('shows that the account has almost as many unfinished lists as its plan allows', async () => {
    const dashboard = await createTestDashboard({ plan: 'free' })
    const problem =
      'Unfinished lists of your account: limit almost reached Until a list finishes or is cancelled View'
    for (let list = 1; list <= 8; list++) {
      expect(textOf((await dashboard.get('/overview')).text)).not.toContain(problem)
      await seedJob(dashboard.database, { id: `job_${list}`, texts: MIXED, done: 0 })
    }
    expect(textOf((await dashboard.get('/overview')).text)).toContain(problem)
  })

  test('shows the results of the checks to an admin only', async () => {
    const check = { check: 'ptr', egress: null, state: 'fail', says: 'no', todo: null } as const
    const at = Date.UTC(2026, 5, 1, 11, 30)
    const dashboard = await createTestDashboard({
      health: { doctorChecks: () => ({ checks: [check], at, isRunning: false, fault: null }) },
    })
    const problem = 'This machine: 1 failure Checked 2026-06-01 11:30 UTC Fix'
    expect(textOf((await dashboard.get('/overview')).text)).not.toContain(problem)
    await write(dashboard.database, trx => updateAccount(trx, 'acc_1', { operator: 1 }))
    expect(textOf((await dashboard.get('/overview')).text)).toContain(problem)
  })

  test('shows only what the key may read', async () => {
    const dashboard = await createTestDashboard()
    await seedJob(dashboard.database, { name: 'March', texts: MIXED })
    await dashboard.signIn(await dashboard.addKey({ scopes: ['dashboard'] }))
    const { status, text } = await dashboard.get('/overview')
    expect(status).toBe(200)
    expect(text).not.toMatch(/March|Credits|Recent verifications|Verify a list/)
  })
})
