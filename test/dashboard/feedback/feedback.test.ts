import { describe, expect, test } from 'vitest'
import { createTestDashboard } from '../../support/dashboard.ts'

const NOW = Date.parse('2026-06-01T00:00:00Z')

/** A dashboard whose account has verdicts with outcomes. */
async function reported() {
  const dashboard = await createTestDashboard()
  const { db } = dashboard.database
  const count = { account_id: 'acc_1', period: NOW }
  await db
    .insertInto('feedback_count')
    .values([
      ...[
        { ...count, reason: 'accepted_email', operator: 'google', confidence: 97 },
        { ...count, reason: 'catch_all/low', operator: '<b>own</b>', confidence: 92 },
      ].map(one => ({ ...one, correct: 950, wrong: 50 })),
      {
        ...count,
        reason: 'rejected_email',
        operator: '',
        confidence: 98,
        correct: 99,
        wrong: 1,
      },
    ])
    .execute()
  await db
    .insertInto('feedback_day')
    .values({ account_id: 'acc_1', day: NOW, source: 'import', kind: 'bounced', pieces: 1_200 })
    .execute()
  return dashboard
}

const textOf = (page: string) => page.replaceAll(/<[^>]+>/g, ' ').replaceAll(/\s+/g, ' ')

describe('the page of feedback', () => {
  test('says how to report feedback while there is none', async () => {
    const { text, status } = await (await createTestDashboard()).get('/feedback')
    expect(status).toBe(200)
    expect(text).toContain('No feedback yet')
    expect(text).toContain('curl https://ev.test/v1/feedback')
    expect(text).not.toContain('Reliability')
  })

  test('says what is missing if no verdict has an outcome', async () => {
    const dashboard = await createTestDashboard()
    await dashboard.request('/v1/feedback', {
      body: { items: [{ email: 'ann@a.test', kind: 'delivered' }] },
    })
    const { text } = await dashboard.get('/feedback')
    expect(text).toContain('No outcomes yet.')
    expect(text).toContain('Received feedback')
  })

  test('compares confidence with outcomes', async () => {
    const { text } = await (await reported()).get('/feedback')
    const words = textOf(text)
    expect(words).toContain('Verdicts compared 2,100 95.2% correct')
    expect(words).toContain('Bounces predicted 49.7% 99 of 199')
    expect(words).toContain('Deliveries lost 0.1% 1 of 1,901')
    expect(text.match(/<circle class="measured"/g)).toHaveLength(1)
    expect(text).toContain('<th scope="row">Catch-all domain, low risk</th>')
    expect(text).toContain('&lt;b&gt;own&lt;/b&gt;')
    expect(words).toContain('2026-06-01 Import 0 1,200 0')
    expect(text).not.toContain('NaN')
  })

  test('is closed to a key without the scope, and not in its menu', async () => {
    const dashboard = await createTestDashboard({ signIn: false })
    await dashboard.signIn(await dashboard.addKey({ scopes: ['dashboard', 'account:read'] }))
    expect((await dashboard.get('/feedback')).status).toBe(403)
    expect((await dashboard.get('/usage')).text).not.toContain('href="/feedback"')
  })
})
