import { describe, expect, test } from 'vitest'
import { SESSION_VIEWS_MAX } from '../../../src/api/middleware/rate-limit-buckets.ts'
import { MINUTE } from '../../../src/platform/clock.ts'
import { createTestDashboard } from '../../support/dashboard.ts'
import { endpointActions } from '../../support/webhook-endpoint.ts'
import { EVIL, endpoint, HARMLESS } from './endpoint.ts'

type TestDashboard = Awaited<ReturnType<typeof endpoint>>

/** Returns the alerts of a page. */
const alertsOf = (page: string) =>
  [...page.matchAll(/<div class="notice is-warn" role="status">.*?<p>(.*?)<\/p>/gs)].map(
    ([, text = '']) =>
      text
        .replaceAll(/<[^>]+>/g, '')
        .replaceAll(/\s+/g, ' ')
        .trim(),
  )

async function fail(
  dashboard: TestDashboard,
  how: Parameters<TestDashboard['receiver']['answer']>[0] = 500,
) {
  await dashboard.happen()
  dashboard.receiver.answer(how)
  await dashboard.attempt()
}

describe('every page', () => {
  test('about webhooks shows an alert for a failing webhook with time, error and link', async () => {
    const dashboard = await endpoint()
    await fail(dashboard, { fault: `Nobody ${EVIL} answered.` })
    await dashboard.happen()
    const { text } = await dashboard.get('/webhooks/new')
    expect(alertsOf(text)).toEqual([
      'Your webhook https://app.test/hook has been failing since 2026-06-01 12:00 UTC: ' +
        `Nobody ${HARMLESS} answered. View deliveries.`,
    ])
    expect(text).toContain(`href="${dashboard.path}"`)
    expect(text).not.toContain('<img')
  })

  test('with a secret that is shown once shows no alert', async () => {
    const dashboard = await endpoint()
    await fail(dashboard)
    const fields = { url: 'https://app.test/other', events: 'batch.completed', active: 'true' }
    const { text } = await dashboard.post('/webhooks', fields)
    expect(alertsOf(text)).toEqual([
      'This secret is shown only once. Save it in the configuration of your program now.',
    ])
  })

  test('marks Webhooks in the sidebar of every page', async () => {
    const dashboard = await endpoint()
    const marked = async (path: string) =>
      (await dashboard.get(path)).text.includes('title="1 failing"')
    expect(await marked('/keys')).toBe(false)
    await fail(dashboard)
    for (const path of ['/keys', '/sessions', '/usage']) {
      expect([path, await marked(path)]).toEqual([path, true])
      expect(alertsOf((await dashboard.get(path)).text)).toEqual([])
    }
  })

  test('shows an alert for a webhook disabled by ev until it is enabled again', async () => {
    const dashboard = await endpoint()
    await dashboard.happen()
    dashboard.receiver.answer(410)
    await dashboard.attempt({ disabledCode: 'failing' })
    expect(alertsOf((await dashboard.get('/webhooks/new')).text)).toEqual([
      'Your webhook https://app.test/hook was disabled: All attempts failed for 5 days. View deliveries.',
    ])
    await dashboard.post(`${dashboard.path}/switch`, { active: 'true' })
    expect(alertsOf((await dashboard.get('/webhooks/new')).text)).toEqual([])
  })

  test('shows no alert for a working or manually disabled webhook', async () => {
    const dashboard = await endpoint()
    await fail(dashboard)
    await dashboard.post(`${dashboard.path}/switch`, { active: 'false' })
    expect(alertsOf((await dashboard.get('/webhooks/new')).text)).toEqual([])
  })

  test('shows no alert on the pages of that webhook and on the table', async () => {
    const dashboard = await endpoint()
    await fail(dashboard)
    expect((await dashboard.get(dashboard.path)).text).not.toContain('Your webhook')
    expect((await dashboard.get('/webhooks')).text).not.toContain('Your webhook')
    expect((await dashboard.get('/webhooks/new')).text).toContain('Your webhook')
  })

  test('shows one alert for several webhooks', async () => {
    const dashboard = await endpoint()
    const { id } = dashboard
    const others = []
    for (let n = 0; n < 4; n++)
      others.push(await dashboard.another({ url: `https://app.test/${n}` }))
    await fail(dashboard)
    for (const other of others) await endpointActions(dashboard, other.id).attempt()
    expect(alertsOf((await dashboard.get('/webhooks/new')).text)).toEqual([
      '5 of your webhooks are failing or were disabled. See your webhooks.',
    ])
    expect((await dashboard.get(`/webhooks/${id}`)).text).toContain(
      '4 of your webhooks are failing',
    )
  })

  test('shows no alert to a key without webhooks:read', async () => {
    const dashboard = await endpoint()
    await fail(dashboard)
    await dashboard.signIn(await dashboard.addKey({ scopes: ['dashboard'] }))
    const { status, text } = await dashboard.get('/sessions')
    expect(status).toBe(200)
    expect(alertsOf(text)).toEqual([])
  })

  test('truncates a long URL', async () => {
    const dashboard = await endpoint({ url: `https://app.test/${'x'.repeat(1_000)}` })
    await fail(dashboard)
    expect(alertsOf((await dashboard.get('/webhooks/new')).text)[0]).toMatch(
      /app\.test\/x{63}… has been failing/,
    )
  })

  test('calls the API once without an alert, and not at all without the scope', async () => {
    const dashboard = await createTestDashboard()
    expect(await askedBy(dashboard, '/sessions')).toEqual(['/v1/webhooks'])
    await dashboard.signIn(await dashboard.addKey({ scopes: ['dashboard'] }))
    expect(await askedBy(dashboard, '/sessions')).toEqual([])
  })

  test('is shown without the alert if the API returns an error', async () => {
    const dashboard = await endpoint()
    await fail(dashboard)
    const views = { kind: 'session', key: await sessionBucketOf(dashboard) } as const
    const limit = SESSION_VIEWS_MAX
    for (let n = 0; n < limit; n++)
      await dashboard.service.limits.charge([{ ...views, limit, perMs: MINUTE }])
    const { status, text } = await dashboard.get('/sessions')
    expect(status).toBe(200)
    expect(alertsOf(text)).toEqual([])
    expect((await dashboard.get('/webhooks')).status).toBe(429)
  })
})

/** Returns the API paths that a page calls. */
async function askedBy({ lines, get }: Pick<TestDashboard, 'lines' | 'get'>, path: string) {
  lines.length = 0
  await get(path)
  return lines.map(({ fields }) => fields.route).filter(route => String(route).startsWith('/v1/'))
}

/** The bucket of the views of the only session. */
async function sessionBucketOf({ database }: Pick<TestDashboard, 'database'>) {
  const { id } = await database.db.selectFrom('session').select('id').executeTakeFirstOrThrow()
  return `session:${id}`
}
