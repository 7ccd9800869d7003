import { describe, expect, test } from 'vitest'
import { listSessions } from '../../../src/accounts/session-store.ts'
import { SESSION_VIEWS_MAX } from '../../../src/api/middleware/rate-limit-buckets.ts'
import { MINUTE } from '../../../src/platform/clock.ts'
import { createTestDashboard } from '../../support/dashboard.ts'
import { happenings } from '../../support/webhook-endpoint.ts'
import { EVIL, endpoint, HARMLESS } from './endpoint.ts'

type Home = Awaited<ReturnType<typeof endpoint>>

/** What a page tells above its own matter. */
const told = (page: string) =>
  [...page.matchAll(/<div class="notice is-warn" role="status"><p>(.*?)<\/p>/gs)].map(
    ([, text = '']) =>
      text
        .replaceAll(/<[^>]+>/g, '')
        .replaceAll(/\s+/g, ' ')
        .trim(),
  )

async function fail(home: Home, how: Parameters<Home['receiver']['answer']>[0] = 500) {
  await home.happen()
  home.receiver.answer(how)
  await home.attempt()
}

describe('every page', () => {
  test('tells of a webhook that fails: since when, what was wrong the last time, and where to look', async () => {
    const home = await endpoint()
    await fail(home, { fault: `Nobody ${EVIL} answered.` })
    await home.happen()
    for (const path of ['/keys', '/sessions', '/usage']) {
      const { text } = await home.get(path)
      expect(told(text)).toEqual([
        'Your webhook https://app.test/hook has been failing since 2026-06-01 12:00:00 UTC: ' +
          `Nobody ${HARMLESS} answered. View deliveries.`,
      ])
      expect(text).toContain(`href="${home.path}"`)
      expect(text).not.toContain('<img')
    }
  })

  test('tells of one that was switched off, and why, until it is switched on again', async () => {
    const home = await endpoint()
    await home.happen()
    home.receiver.answer(410)
    await home.attempt({ disabledCode: 'failing' })
    expect(told((await home.get('/keys')).text)).toEqual([
      'Your webhook https://app.test/hook was disabled: All attempts failed for 5 days. View deliveries.',
    ])
    await home.post(`${home.path}/switch`, { active: 'true' })
    expect(told((await home.get('/keys')).text)).toEqual([])
  })

  test('tells nothing of one that works, or that was switched off by hand', async () => {
    const home = await endpoint()
    await fail(home)
    await home.post(`${home.path}/switch`, { active: 'false' })
    expect(told((await home.get('/keys')).text)).toEqual([])
  })

  test('leaves it to the pages of that webhook, and to the table of all, to tell of it themselves', async () => {
    const home = await endpoint()
    await fail(home)
    expect((await home.get(home.path)).text).not.toContain('Your webhook')
    expect((await home.get('/webhooks')).text).not.toContain('Your webhook')
    expect((await home.get('/webhooks/new')).text).toContain('Your webhook')
  })

  test('tells of several in one sentence', async () => {
    const home = await endpoint()
    const { id } = home
    const others = []
    for (let n = 0; n < 4; n++) others.push(await home.another({ url: `https://app.test/${n}` }))
    await fail(home)
    for (const other of others) await happenings(home, other.id).attempt()
    expect(told((await home.get('/keys')).text)).toEqual([
      '5 of your webhooks are failing or were disabled. See your webhooks.',
    ])
    expect((await home.get(`/webhooks/${id}`)).text).toContain('4 of your webhooks are failing')
  })

  test('tells nothing to a key that may not see webhooks', async () => {
    const home = await endpoint()
    await fail(home)
    await home.signIn(await home.addKey({ scopes: ['dashboard'] }))
    const { status, text } = await home.get('/sessions')
    expect(status).toBe(200)
    expect(told(text)).toEqual([])
  })

  test('cuts a URL that is longer than a line', async () => {
    const home = await endpoint({ url: `https://app.test/${'x'.repeat(1_000)}` })
    await fail(home)
    expect(told((await home.get('/keys')).text)[0]).toMatch(/app\.test\/x{63}… has failed/)
  })

  test('asks once where there is nothing to tell, and not at all where the key may not', async () => {
    const home = await createTestDashboard()
    expect(await askedBy(home, '/sessions')).toEqual(['/v1/webhooks'])
    await home.signIn(await home.addKey({ scopes: ['dashboard'] }))
    expect(await askedBy(home, '/sessions')).toEqual([])
  })

  test('is shown without it where the API refuses to tell', async () => {
    const home = await endpoint()
    await fail(home)
    const views = { kind: 'session', key: await sessionBucketOf(home) } as const
    const limit = SESSION_VIEWS_MAX
    for (let n = 0; n < limit; n++)
      await home.service.limits.charge([{ ...views, limit, perMs: MINUTE }])
    const { status, text } = await home.get('/sessions')
    expect(status).toBe(200)
    expect(told(text)).toEqual([])
    expect((await home.get('/webhooks')).status).toBe(429)
  })
})

/** The paths of the API that a page asks. */
async function askedBy({ lines, get }: Pick<Home, 'lines' | 'get'>, path: string) {
  lines.length = 0
  await get(path)
  return lines.map(({ fields }) => fields.route).filter(route => String(route).startsWith('/v1/'))
}

async function sessionBucketOf({ database, clock }: Pick<Home, 'database' | 'clock'>) {
  const [session] = await listSessions(database, 'acc_1', clock.now())
  return `session:${session?.id}`
}
