import { describe, expect, test } from 'vitest'
import { DAY } from '../../src/platform/clock.ts'
import { createTestDashboard } from '../support/dashboard.ts'
import { MIXED } from '../support/job-rows.ts'
import { byLocalPart, stopHalfway, submitHalfway } from '../support/list-service.ts'
import { users } from '../support/recipients.ts'
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
    const dashboard = await createTestDashboard(stopHalfway().options)
    await submitHalfway(dashboard, { name: '<b>March</b>' })
    await dashboard.settled(dashboard.ledger.flushed())
    const { text } = await dashboard.get('/overview')
    const words = textOf(text)
    expect(words).toContain('Verified 2 30 days')
    expect(words).toContain('Deliverable 50.0% 1 address')
    expect(words).toContain('Lists running 1 4 rows left')
    expect(words).toMatch(/&lt;b&gt;March&lt;\/b&gt; Running 33%/)
    expect(text).not.toContain('<b>March</b>')
    const week = textOf((await dashboard.get('/overview?period=week')).text)
    expect(week).toContain('Verified 2 7 days')
  })

  test('compares the figures with the previous period', async () => {
    const { verify, clock, signIn, get } = await createTestDashboard({
      engine: { script: byLocalPart },
    })
    const week = async () => {
      await signIn()
      return textOf((await get('/overview?period=week')).text)
    }
    await verify([...users(3), 'risky1@a.test', 'risky2@a.test'])
    await clock.advance(7 * DAY)
    await verify([...users(3).map(one => `valid${one}`), 'risky3@a.test'])
    expect(await week()).toContain('Verified 4 −20.0% vs. previous 7 days')
    expect(await week()).toContain('Deliverable 75.0% +15 pt · 3 addresses')
  })

  test('polls the lists while one is active', async () => {
    const dashboard = await createTestDashboard()
    const id = await dashboard.submit(MIXED)
    const polling = 'hx-get="/overview/lists" hx-trigger="every 5s"'
    expect((await dashboard.get('/overview')).text).toContain(polling)
    expect((await dashboard.get('/overview/lists')).text).toContain(polling)
    await dashboard.json(`/v1/jobs/${id}/cancel`, { method: 'POST' })
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
    const problem = /limit almost reached Resets 2026-06-02 00:00 UTC View/
    await dashboard.submit(users(79))
    expect(textOf((await dashboard.get('/overview')).text)).not.toMatch(problem)
    await dashboard.submit(users(1, 'b.test'))
    expect(textOf((await dashboard.get('/overview')).text)).toMatch(problem)
  })

  test('shows that the account has almost as many unfinished lists as its plan allows', async () => {
    const dashboard = await createTestDashboard({ plan: 'free' })
    const problem =
      'Unfinished lists of your account: limit almost reached Until a list finishes or is cancelled View'
    for (let list = 1; list <= 8; list++) {
      expect(textOf((await dashboard.get('/overview')).text)).not.toContain(problem)
      await dashboard.submit(MIXED)
    }
    expect(textOf((await dashboard.get('/overview')).text)).toContain(problem)
  })

  test('shows the results of the checks to an admin only', async () => {
    const check = { check: 'ptr', egress: null, state: 'fail', says: 'no', todo: null } as const
    const at = Date.UTC(2026, 5, 1, 11, 30)
    const health = {
      doctorChecks: () => ({ checks: [check], at, isRunning: false, fault: null }),
    }
    const problem = 'This machine: 1 failure Checked 2026-06-01 11:30 UTC Fix'
    for (const isAdmin of [false, true]) {
      const { get } = await createTestDashboard({ health, isAdmin })
      expect(textOf((await get('/overview')).text).includes(problem)).toBe(isAdmin)
    }
  })

  test('shows only what the key may read', async () => {
    const dashboard = await createTestDashboard()
    await dashboard.submit(MIXED, { name: 'March' })
    await dashboard.signIn(await dashboard.addKey({ scopes: ['dashboard'] }))
    const { status, text } = await dashboard.get('/overview')
    expect(status).toBe(200)
    expect(text).not.toMatch(/March|Credits|Recent verifications|Verify a list/)
  })
})
